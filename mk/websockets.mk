# What websockets cost: bench/websockets.py, its figures in bench/results/websockets.json.
.PHONY: bench-websockets

bench-websockets: compiled ## turns a second, memory of idle sockets, long messages, 20,000 connects
	$(COMPILED) $(BIN)/python bench/websockets.py
