# Needs make and Python 3.11 or newer, nothing else. Each target makes and fills the virtual
# environment it runs in, and does so again only when pyproject.toml has changed.

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2
DATA   ?= ../shared/data
PEERS  ?= .venv-peers

PY    := $(VENV)/bin/python
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.ready-docs
# -qq: errors only. --no-compile: halves the set-up; Python compiles what is imported, when it is.
PIP   := $(PY) -m pip --disable-pip-version-check install -qq --no-compile

PICTURES := examples/gallery.py docs/methods.py examples/demo.py examples/learning.py docs/combinations.py

PYTEST := $(PY) -m pytest -n $(JOBS) --hypothesis-profile=ci

# One BLAS thread for each process: the matrices are small, several processes are the parallelism, and threads that
# wait for each other on a busy machine take many times as long. Benchmarks set their numbers of threads themselves.
ONE_THREAD := test slow demo docs study dist minimum
$(ONE_THREAD): export OPENBLAS_NUM_THREADS := 1
$(ONE_THREAD): export OMP_NUM_THREADS := 1
$(ONE_THREAD): export MKL_NUM_THREADS := 1
$(ONE_THREAD): export MPLBACKEND := Agg

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test slow lint format typecheck bench bench-peers study docs dist minimum clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(READY) ## run the demonstration: a table, and the figure build/demo.png
	$(PY) examples/demo.py

test: lint typecheck ## lint, check formatting and types, run tests and doctests
	$(PYTEST)

slow: $(READY) ## run the tests that take minutes
	$(PYTEST) -m slow

lint: $(READY) ## check style and formatting
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: $(READY) ## mend what lint can mend
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

typecheck: $(READY) ## check types, strictly
	$(PY) -m mypy

bench: $(READY) ## run the benchmarks
	$(PY) benchmarks/run.py

bench-peers: $(READY) ## curves of log loss over time beside GPyTorch (in its own environment) and others, for an hour
	@test -x $(PEERS)/bin/python || { $(PYTHON) -m venv $(PEERS) && $(PEERS)/bin/pip install -q numpy gpytorch; }
	@for set in magic adult unit two normal; do \
	  $(PY) benchmarks/curves.py ours $$set --data $(DATA) --out build/curves && \
	  $(PY) benchmarks/curves.py boosting $$set --data $(DATA) --out build/curves && \
	  $(PY) benchmarks/curves.py logistic $$set --data $(DATA) --out build/curves && \
	  $(PEERS)/bin/python benchmarks/curves.py gpytorch $$set --data $(DATA) --seconds 180 --out build/curves || exit 1; done
	$(PY) benchmarks/curves.py table build/curves
	$(PY) benchmarks/curves.py plot build/curves build/curves.png

study: $(READY) ## compare with other classifiers on the data sets in DATA, for hours; writes docs/guide/peers.md
	$(PY) studies/peers.py --data $(DATA) --jobs $(JOBS)

docs: $(DOCS_READY) ## make its pictures and build the documentation; a warning is an error
	$(PY) docs/mathjax.py
	$(MAKE) --no-print-directory -O -j $(JOBS) $(PICTURES:%=draw/%)
	$(PY) -m sphinx -W --keep-going -q -j $(JOBS) -b html docs docs/_build/html
	@echo "The documentation is at docs/_build/html/index.html."

# Each writes pictures or a page for the documentation; `make docs` runs JOBS of them at a time.
draw/%: $(DOCS_READY)
	$(PY) $*

draw/examples/demo.py: $(DOCS_READY)
	$(PY) examples/demo.py docs/images/demo.png

dist: $(READY) ## build wheel and sdist, and test the wheel in an empty environment
	rm -rf dist
	$(PY) -m build --no-isolation --outdir dist . >/dev/null
	PYTHON=$(PY) .ci/check-wheel dist

# Without sampling: arviz-stats needs newer versions than these.
minimum: ## run the tests with the oldest versions of numpy, scipy and scikit-learn that are supported
	$(PYTHON) -m venv .venv-minimum
	$(PYTHON) .ci/minimum pyproject.toml > .venv-minimum/constraints.txt
	.venv-minimum/bin/python -m pip --disable-pip-version-check install -qq -c .venv-minimum/constraints.txt \
	  '.[plot,cli]' 'pandas<3' 'polars<2' 'pyarrow<20' 'pytest>=8.2' 'pytest-xdist>=3.5' 'hypothesis>=6.120' 'mpmath>=1.3' \
	  'threadpoolctl>=3.1'
	.venv-minimum/bin/python -m pytest -q -n $(JOBS) \
	  tests/core tests/inference tests/kernels tests/likelihoods tests/priors tests/sparse tests/plotting/test_contour.py \
	  tests/cli/test_fit.py tests/cli/test_predict.py tests/test_estimator.py tests/test_scikit_learn.py \
	  tests/test_any_likelihood.py tests/test_likelihoods.py tests/test_likelihood_accuracy.py

clean: ## remove the virtual environment and everything built or cached
	rm -rf $(VENV) $(PEERS) .venv-minimum build dist htmlcov docs/_build docs/generated docs/gallery docs/_static/mathjax
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  found=$$($(PYTHON) --version 2>/dev/null) || found="not to be found"; \
	  echo "gpclass needs Python 3.11 or newer, but '$(PYTHON)' is $$found; name another with: make PYTHON=/path/to/python" >&2; \
	  exit 1; }
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e '.[dev,plot,dist]'
	@touch $@

$(DOCS_READY): $(READY)
	@echo "Adding what the documentation needs to $(VENV) ..."
	@$(PIP) -e '.[docs]'
	@touch $@
