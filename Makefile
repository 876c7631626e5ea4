PYTHON ?= python3
VENV := .venv
CONSTRAINTS := constraints.txt
EXTRA := dev
BIN := $(VENV)/bin
# Of pip, for what is installed and for what is needed to build it.
EXACT = PIP_CONSTRAINT=$(CURDIR)/$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CURDIR)/$(CONSTRAINTS)

.PHONY: setup demo test test-forks test-sdist test-lowest test-clang test-lowest-clang dist lint docs-pictures \
	rivals bench bench-full bench-search bench-networks bench-report reproduce reproduce-quick clean

setup: $(VENV)/installed

$(VENV)/installed: pyproject.toml setup.py $(CONSTRAINTS) $(wildcard src/sparsistent/core/*.[ch])
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(EXACT) $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$(EXTRA)]"
	touch $@

demo: setup
	$(BIN)/python examples/digits.py demo-output

test: setup
	$(BIN)/python -m pytest -n auto

test-forks: setup
	$(BIN)/python -W error tests/forks.py 1000

# The pictures of docs/for and of the README; screenshots are chromium's.
docs-pictures: setup
	$(BIN)/python tests/pages.py

# Other versions and compilers, in an unpacked sdist: so this folder keeps what was compiled here, and
# the sdist is known to have all that the tests need.
test-lowest: dist
	$(MAKE) test-sdist VENV=.venv-lowest CONSTRAINTS=constraints-lowest.txt

test-clang: dist
	$(MAKE) test-sdist VENV=.venv-clang CC=clang

test-lowest-clang: dist
	$(MAKE) test-sdist VENV=.venv-lowest-clang CONSTRAINTS=constraints-lowest.txt CC=clang

test-sdist:
	rm -rf $(VENV)/sdist $(VENV)/installed
	mkdir -p $(VENV)/sdist
	tar -xzf dist/sparsistent-*.tar.gz -C $(VENV)/sdist --strip-components=1
	$(MAKE) -C $(VENV)/sdist test VENV=$(abspath $(VENV)) EXTRA=test

# The wheel is built from the sdist.
dist: setup
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python tests/check_distributions.py dist

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

rivals: .venv-rivals/installed

.venv-rivals/installed: benchmarks/constraints.txt
	test -x .venv-rivals/bin/python || $(PYTHON) -m venv .venv-rivals
	.venv-rivals/bin/python -m pip install --quiet --disable-pip-version-check --constraint benchmarks/constraints.txt gglasso skglm
	touch $@

bench: setup
	$(BIN)/python -m benchmarks.run small
	$(BIN)/python -m benchmarks.first_fit
	$(BIN)/python -m benchmarks.default_fit
	$(BIN)/python -m benchmarks.default_rule

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

bench-networks: setup rivals
	$(BIN)/python -m benchmarks.networks.run ours
	$(BIN)/python -m benchmarks.networks.run rivals --draws 3
	$(BIN)/python -m benchmarks.false_edges
	$(BIN)/python -m benchmarks.networks.report

bench-report: setup
	$(BIN)/python -m benchmarks.report

reproduce: setup
	$(BIN)/python -m sparsistent.experiments run docs/reproduction
	$(BIN)/python -m sparsistent.experiments show docs/reproduction

reproduce-quick: setup
	$(BIN)/python -m sparsistent.experiments run --quick reproduction-quick
	$(BIN)/python -m sparsistent.experiments show reproduction-quick

clean:
	rm -rf $(VENV) .venv-lowest .venv-clang .venv-lowest-clang .venv-rivals build dist demo-output reproduction-quick
