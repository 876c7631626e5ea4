PYTHON ?= python3
VENV := .venv
CONSTRAINTS := constraints.txt
EXTRA := dev
BIN := $(VENV)/bin
# Of pip, for what is installed and for what is needed to build it; and no warning of the compiler.
EXACT = SPARSISTENT_WERROR=1 PIP_CONSTRAINT=$(CURDIR)/$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CURDIR)/$(CONSTRAINTS)

# Tests of compiled parts, which are repeated under sanitizers.
COMPILED := compiled_arguments correlations engine neighborhood_engine properties refit rounding screening

.PHONY: setup demo test test-forks test-sdist test-lowest test-clang test-lowest-clang test-debug \
	test-sanitized dist lint docs-pictures rivals bench bench-against bench-full bench-users bench-search \
	bench-networks bench-report reproduce reproduce-quick clean

setup: $(VENV)/installed

$(VENV)/installed: pyproject.toml setup.py $(CONSTRAINTS) $(wildcard src/sparsistent/*/*.pyx src/sparsistent/*/*.pxd src/sparsistent/*/*.[ch])
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

# Every test with all indices checked, then the tests of what is compiled with sanitizers.
test-debug: dist
	$(MAKE) test-sdist VENV=.venv-debug SPARSISTENT_DEBUG=1
	$(MAKE) -C .venv-debug/sdist test-sanitized VENV=$(abspath .venv-debug)

test-sdist:
	rm -rf $(VENV)/sdist $(VENV)/installed
	mkdir -p $(VENV)/sdist
	tar -xzf dist/sparsistent-*.tar.gz -C $(VENV)/sdist --strip-components=1
	$(MAKE) -C $(VENV)/sdist test VENV=$(abspath $(VENV)) EXTRA=test

# In an unpacked sdist: this folder's modules would not load without the sanitizers' library any more.
# Python leaves small pieces of memory to malloc, too, which the library watches.
test-sanitized:
	SPARSISTENT_SANITIZE=1 $(BIN)/python setup.py -q build_ext --inplace --force
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
		$(BIN)/python -m pytest -n auto $(addprefix tests/test_,$(COMPILED:=.py))

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

# This folder beside another revision, for instance: make bench-against REV=main
bench-against: setup
	$(BIN)/python -m benchmarks.against $(REV)
	$(BIN)/python -m benchmarks.crossings
	$(BIN)/python -m benchmarks.sizes

bench-full: setup rivals
	$(BIN)/python -m benchmarks.run full
	$(BIN)/python -m benchmarks.run growth
	$(BIN)/python -m benchmarks.run large

bench-users: setup
	$(BIN)/python -m benchmarks.run users

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
	rm -rf $(VENV) .venv-lowest .venv-clang .venv-lowest-clang .venv-debug .venv-rivals build dist demo-output reproduction-quick
