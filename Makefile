# `make demo` and `make test` work on a fresh machine with Python 3.11 or newer and make; both create .venv themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
MINUTES ?= 60
BASE ?= HEAD
MULTI30K ?= $(if $(LAGGING_TEST_DATA),$(LAGGING_TEST_DATA)/multi30k)
# mkdocs-material announces the end of its life in colour on every build
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help demo shell test test-core ledger fuzz bench docs tables web lab clean

help: ## list what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.lagging: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lagging needs Python 3.11 or newer; make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(STAMP): $(VENV)/.lagging
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	# SimulEval and simulstream need packages that the tests do not use: they are kept apart, without them
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(VENV)/peers simuleval==1.1.4 textgrid==1.6.1 simulstream==1.0.0 librosa==0.11.0 lazy_loader==0.6
	@touch $@

demo: $(VENV)/.lagging ## score, inspect and validate the bundled examples
	@$(BIN)/python examples/demo.py

shell: $(VENV)/.lagging ## open a shell in which `lagging` is found
	@echo "lagging is there; exit leaves this shell"
	@PATH="$(CURDIR)/$(BIN):$$PATH" $${SHELL:-sh}

test: $(STAMP) ## every check: style, types, tests, documentation, package
	@$(BIN)/python tools/check.py

test-core: $(STAMP) ## style, types, quick tests; not: slow tests, agents, losses, Spark, property, parity, fuzz, coverage, web, package
	@$(BIN)/python tools/check.py style types core

ledger: $(STAMP) ## run every command with the code of a commit and with this code; no number may differ (BASE=main, ARGS=--no-data)
	@$(BIN)/python tools/ledger.py against $(BASE) $(ARGS)

fuzz: $(STAMP) ## hostile inputs on all cores, an hour of them (MINUTES=60, ARGS='--seed 1000000'); what is found is in tests/fuzz/findings
	@PYTHONPATH=tests $(BIN)/python -m fuzz --minutes $(MINUTES) $(ARGS)

bench: $(STAMP) ## run every benchmark and write docs/benchmarks.md (ARGS=--full for the largest sizes)
	@$(BIN)/python bench/page.py $(ARGS)

$(VENV)/.docs: $(VENV)/.lagging
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	@touch $@

docs: $(VENV)/.docs ## build the documentation into site/
	@$(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html"

tables: $(VENV)/.docs ## write what the documentation takes from the code: tables, pages of metrics
	@$(BIN)/python tools/tables.py

web: ## rebuild the pages that are shipped (needs Node 20.19 or newer)
	@npm --prefix web --silent install --no-save --no-audit --no-fund
	@npm --prefix web --silent run build

lab: $(STAMP) ## the paper's experiment on Multi30k, from data to figures: two hours (MULTI30K=folder)
	@$(BIN)/python -m lab $(if $(MULTI30K),--data $(MULTI30K)) $(ARGS)

clean: ## remove what was made
	rm -rf $(VENV) site dist build .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
