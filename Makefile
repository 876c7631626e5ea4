PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup demo test test-forks lint rivals bench bench-full bench-search bench-report reproduce reproduce-quick clean

setup: $(VENV)/installed

$(VENV)/installed: pyproject.toml setup.py constraints.txt $(wildcard src/sparsistent/core/*.[ch])
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: setup
	$(BIN)/python examples/breast_cancer.py demo-output

test: setup
	$(BIN)/python -m pytest -n auto

test-forks: setup
	$(BIN)/python -W error tests/forks.py 1000

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

rivals: .venv-rivals/installed

.venv-rivals/installed: benchmarks/constraints.txt
	test -x .venv-rivals/bin/python || $(PYTHON) -m venv .venv-rivals
	.venv-rivals/bin/python -m pip install --quiet --disable-pip-version-check --constraint benchmarks/constraints.txt gglasso
	touch $@

bench: setup
	$(BIN)/python -m benchmarks.run small
	$(BIN)/python -m benchmarks.first_fit

bench-full: setup rivals
	$(BIN)/python -m benchmarks.run full
	$(BIN)/python -m benchmarks.run growth
	$(BIN)/python -m benchmarks.run large

bench-search: setup
	$(BIN)/python -m benchmarks.search_quality.run searches
	$(BIN)/python -m benchmarks.search_quality.run neighborhoods
	$(BIN)/python -m benchmarks.search_quality.run rivals
	$(BIN)/python -m benchmarks.search_quality.run stepwise
	$(BIN)/python -m benchmarks.search_quality.optimum
	$(BIN)/python -m benchmarks.search_quality.report

bench-report: setup
	$(BIN)/python -m benchmarks.report

reproduce: setup
	$(BIN)/python -m sparsistent.experiments run docs/reproduction
	$(BIN)/python -m sparsistent.experiments show docs/reproduction

reproduce-quick: setup
	$(BIN)/python -m sparsistent.experiments run --quick reproduction-quick
	$(BIN)/python -m sparsistent.experiments show reproduction-quick

clean:
	rm -rf $(VENV) .venv-rivals demo-output reproduction-quick
