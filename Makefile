# Two commands set everything up by themselves: `make ladder` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
SOURCES = pyproject.toml CMakeLists.txt $(wildcard engine/native/* engine/kernels/*)

.PHONY: ladder test setup lint clean

ladder: setup  ## the flights ladder on the CPU: engine, XGBoost, LightGBM, CatBoost; then the standings
	$(BIN)/dyno ladder run flights
	$(BIN)/dyno standings

test: setup lint  ## the whole suite; prints what took longest
	$(BIN)/python -m pytest -n 2 --durations=15

setup: $(STAMP)

$(STAMP): $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet scikit-build-core nanobind ninja
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[peers,bonsai,dev]"
	touch $(STAMP)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
