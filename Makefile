# Everything a contributor runs. Needs Python 3.11, git and make; the rest is installed into .venv.
PYTHON ?= python3.11
BIN := .venv/bin
STAMP := .venv/.installed
DEMO_STAMP := .venv/.installed-demo
INSTALL = test -x $(BIN)/python || $(PYTHON) -m venv .venv; \
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable

.PHONY: setup demo test lint format test-slow benchmarks clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@echo "installing into .venv: a minute or two"
	$(INSTALL) '.[dev]'
	touch $(STAMP) $(DEMO_STAMP)

# The demo needs no development tools.
$(DEMO_STAMP): pyproject.toml constraints.txt
	@echo "installing into .venv: about a minute"
	$(INSTALL) '.[plots]'
	touch $(DEMO_STAMP)

demo: $(DEMO_STAMP)
	$(BIN)/python examples/demo.py

# In these files, which users call, every parameter is documented; elsewhere what is documented is
# documented right.
PUBLIC := $(addprefix src/roundtrip/,estimator.py classifier.py imputer.py loading.py \
	plots/conditional.py plots/curves.py plots/images.py plots/pairs.py plots/panels.py \
	density/scoring.py density/questions.py density/conditional.py density/estimate.py \
	baselines/base.py \
	outliers/detector.py outliers/p_values.py outliers/explanation.py)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/numpydoc lint --ignore PR01 $(shell find src -name '*.py')
	$(BIN)/numpydoc lint $(PUBLIC)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Small networks gain nothing by a second thread: two tests at a time instead.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist worksteal

test-slow: setup
	$(BIN)/pytest -m slow

benchmarks: setup
	$(BIN)/roundtrip reproduce fig2

clean:
	rm -rf .venv build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
