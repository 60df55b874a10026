# One file that runs on a bare Debian 12 with its python3: `make dist`, then `make install ONEFILE=dist/llmgw`.
.PHONY: dist

dist: $(STAMP) ## dist/llmgw: the whole program in one executable
	$(BIN)/python packaging/onefile.py
