# Every target is complete on a fresh clone with Python 3.11+ and make: the first one to run makes .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/installed
MARKS  ?= not slow and not wheel

# Matrices here are small: threads of OpenBLAS cost ten times what they share, and workers of the tests take turns anyway.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help demo viewer test test-all lint format types layers pytest wheel-test bridge-test coverage bench campaign house docs clean

help:
	@echo "make demo    set up, run six demonstrations, write one report page with mechanisms in motion"
	@echo "make test    set up, lint, types, layers, then all tests"
	@echo "make test-all     the same with the tests that build packages and pages, minutes each"
	@echo "make wheel-test   build a wheel with compiled loops, run first calls in a fresh environment"
	@echo "make bridge-test  tests of JAX, PyTorch, rsl_rl, Crocoddyl and Rerun, each in an environment of its own (gigabytes)"
	@echo "make lint | format | types | layers | pytest | coverage | bench | campaign | house | docs | viewer | clean"

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/dalembert demo
	$(BIN)/dalembert warm  # what else there is to compile, so that no later call waits for it

test: $(STAMP)
	$(MAKE) --jobs=2 lint types layers
	$(BIN)/dalembert warm  # once, or each worker of the tests would compile the same loops
	$(MAKE) pytest

test-all: $(STAMP)
	$(MAKE) test MARKS="not wheel"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)
	$(BIN)/basedpyright

layers: $(STAMP)
	$(BIN)/lint-imports

pytest: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal --durations=40 -m "$(MARKS)"

wheel-test: $(STAMP)
	$(BIN)/python -m pytest -m wheel -rP tests/cli/test_wheel.py

# JAX in its oldest and newest supported versions. PIP_EXTRA_INDEX_URL may name an index that has PyTorch without CUDA.
BRIDGES := $(VENV)/bridges
# The newest JAX needs a newer Python than the oldest that is supported here; taken where there is one.
NEWEST_PYTHON = $(or $(shell for p in python3.14 python3.13 python3.12; do $$p -c "import venv" 2>/dev/null && echo $$p && break; done),$(PYTHON))
bridge-test:
	$(MAKE) $(BRIDGES)/jax-oldest $(BRIDGES)/jax $(BRIDGES)/torch $(BRIDGES)/crocoddyl $(BRIDGES)/rerun
	$(BRIDGES)/jax-oldest/bin/python -m pytest -rs tests/bridges/test_jax.py
	$(BRIDGES)/jax/bin/python -m pytest -rs tests/bridges/test_jax.py tests/bridges/test_gym.py tests/bridges/test_tutorials.py
	$(BRIDGES)/torch/bin/python -m pytest -rs tests/bridges/test_torch.py tests/bridges/test_gym.py \
	    tests/bridges/test_rsl_rl.py tests/bridges/test_tutorials.py
	$(BRIDGES)/crocoddyl/bin/python -m pytest -rs tests/bridges/test_crocoddyl.py tests/bridges/test_tutorials.py
	$(BRIDGES)/rerun/bin/python -m pytest -rs tests/bridges/test_rerun.py tests/bridges/test_tutorials.py

$(BRIDGES)/jax-oldest: INSTALL = "jax==0.6.0" "jaxlib==0.6.0" --editable ".[jax]"
$(BRIDGES)/jax: INSTALL = --editable ".[jax,gym]"
$(BRIDGES)/jax: PYTHON := $(NEWEST_PYTHON)
$(BRIDGES)/torch: INSTALL = --editable ".[torch,rsl]" tensorboard
$(BRIDGES)/crocoddyl: INSTALL = --editable ".[crocoddyl]"
$(BRIDGES)/rerun: INSTALL = --editable ".[rerun]"
$(BRIDGES)/%: pyproject.toml
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$@/bin/python -m pip install --quiet --disable-pip-version-check $(INSTALL) hypothesis beartype pin pytest "example-robot-data>=5"
	@touch $@

coverage: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term

bench: $(STAMP)
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/kkt.py
	$(BIN)/python benchmarks/kernel.py
	$(BIN)/python benchmarks/friction.py
	$(BIN)/python benchmarks/tableau.py

campaign: $(STAMP)
	$(BIN)/python benchmarks/campaign.py

house: $(STAMP)
	$(BIN)/python tools/house.py

viewer:
	cd tools/viewer && npm install --no-audit --no-fund && npm run build
	$(PYTHON) tools/viewer/compress.py

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf $(VENV) docs/_build dist build .coverage .pytest_cache .ruff_cache .hypothesis .import_linter_cache
