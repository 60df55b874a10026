# Measuring the gateway against its peers; bench/README.md says how.
ROUNDS ?= 5

.PHONY: bench bench-peers bench-growth bench-micro

bench: compiled ## CPU, times and memory beside nginx, vllm-router and smg, as far as they are installed
	$(COMPILED) $(BIN)/python bench/run.py --rounds $(ROUNDS) $(WORKLOADS)

bench-peers: ## install those peers that come from PyPI into bench/.peers
	$(PYTHON) -m venv bench/.peers
	bench/.peers/bin/pip install -q --disable-pip-version-check vllm-router
	bench/.peers/bin/pip install -q --disable-pip-version-check smg

bench-growth: compiled ## what 1,000 nodes, 10,000 keys, a start and an overload cost
	$(COMPILED) $(BIN)/python bench/growth.py

bench-micro: compiled ## the pieces of the hot path, each alone
	$(COMPILED) $(BIN)/pytest -o addopts='' -p benchmark bench/micro
