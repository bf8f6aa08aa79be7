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

# The test processes are the parallelism: a BLAS thread pool in each would only contend with it.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 MPLBACKEND=Agg \
          $(PY) -m pytest -n $(JOBS) --hypothesis-profile=ci

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test slow lint format typecheck bench bench-peers study docs clean

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
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(PY) studies/peers.py --data $(DATA) --jobs $(JOBS)

docs: $(DOCS_READY) ## make its pictures and build the documentation; a warning is an error
	$(PY) examples/gallery.py
	$(PY) docs/combinations.py
	$(PY) examples/demo.py docs/images/demo.png
	$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The documentation is at docs/_build/html/index.html."

clean: ## remove the virtual environment and everything built or cached
	rm -rf $(VENV) $(PEERS) build dist htmlcov docs/_build docs/generated
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  found=$$($(PYTHON) --version 2>/dev/null) || found="not to be found"; \
	  echo "gpclass needs Python 3.11 or newer, but '$(PYTHON)' is $$found; name another with: make PYTHON=/path/to/python" >&2; \
	  exit 1; }
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e '.[dev,plot]'
	@touch $@

$(DOCS_READY): $(READY)
	@echo "Adding what the documentation needs to $(VENV) ..."
	@$(PIP) -e '.[docs]'
	@touch $@
