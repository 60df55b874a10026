# Everything that a developer or a packager calls. `make help` lists it.
PYTHON ?= python3.11
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
# The modules as they are written, also where they are compiled: what counts calls, puts fakes in
# place of functions, or measures coverage needs these.
AS_WRITTEN = LLMGW_PURE=1
COMPILED = LLMGW_PURE=0

.DEFAULT_GOAL := help
.PHONY: help demo compiled test test-compiled check format lint types coverage mutants stress smoke
.PHONY: precommit hooks clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(AS_WRITTEN) $(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	$(BIN)/python setup.py -q build_ext --inplace
	@touch $@

compiled: $(STAMP) ## compile again, after an edit of what packaging/compiled.txt lists
	$(COMPILED) $(BIN)/python setup.py -q build_ext --inplace

demo: $(STAMP) ## two simulated nodes, a gateway, and a failover to watch
	$(BIN)/llmgw demo

test: $(STAMP) ## the test suite, on the modules as they are written
	$(AS_WRITTEN) $(BIN)/pytest

test-compiled: $(STAMP) ## the test suite, on the compiled modules; `make compiled` first
	$(COMPILED) $(BIN)/llmgw --version
	$(COMPILED) $(BIN)/pytest

check: $(STAMP) lint types test coverage ## format, lint, types, tests, and whole branch coverage of core

format: $(STAMP) ## write the format that `lint` asks for
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint: $(STAMP)
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: $(STAMP)
	$(BIN)/mypy

coverage: $(STAMP)
	$(AS_WRITTEN) $(BIN)/pytest tests/core --cov=llmgw.core --cov-report=
	$(BIN)/coverage report --include='llmgw/core/*' --fail-under=100 --show-missing --skip-covered

mutants: $(STAMP) ## each known mistake, put into a copy, must fail the suite
	$(AS_WRITTEN) $(BIN)/python tests/mutants/run.py

stress: $(STAMP) ## core, runtime and web in random order, five times, with asyncio's debug mode
	for seed in 1 2 3 4 5; do echo "seed $$seed"; \
	  PYTHONASYNCIODEBUG=1 $(AS_WRITTEN) $(BIN)/pytest -p no:cacheprovider --randomly-seed=$$seed \
	    tests/core tests/runtime tests/web || exit 1; done

smoke: $(STAMP) ## the installed program, two simulated nodes: the first rejects, the second serves
	$(BIN)/python tests/system/smoke.py

precommit: $(STAMP) ## format, lint, types and the quick tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(AS_WRITTEN) $(BIN)/pytest tests/core tests/test_layering.py tests/test_files.py tests/test_patience.py tests/test_contract.py tests/test_docs.py

hooks: ## run `make precommit` before each commit
	printf '#!/bin/sh\nexec make -s precommit\n' > .git/hooks/pre-commit
	chmod +x .git/hooks/pre-commit

clean:
	find llmgw -name '*.so' -delete
	rm -rf llmgw/compiled.sums $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage

-include mk/*.mk
