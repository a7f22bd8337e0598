# Every target makes its own environment in .venv the first time it is needed; nothing else has to be installed
# but python3 (3.11 or newer) and g++ (to compile lowered models when they are verified).

PYTHON := $(shell command -v python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# Build environments of source packages follow the pins as well.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1
# A process that may not keep what it compiled spends half of its start on that: pytest's workers, commands that are run.
export PYTHONDONTWRITEBYTECODE :=
# DaCe calls cmake and ninja, which pip puts beside python.
export PATH := $(CURDIR)/$(BIN):$(PATH)

# Neighbours share what they made once, such as a solved design: a worker takes a part of the tests, and then from others.
# There is one worker more than processors, up to four: some tests wait for commands that they started. Tests of single
# modules wait for nothing, and what each worker imports and collects takes as long as some hundred of them.
PROCESSORS := $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
PARALLEL := -n $(shell $(PYTHON) -c 'print(min(4, $(PROCESSORS) + 1))') --dist worksteal
PARALLEL_UNIT := -n $(shell $(PYTHON) -c 'print(min(4, $(PROCESSORS)))') --dist worksteal

.PHONY: demo test unit check docs screenshots fuzz nightly rtl mutants models bench clean

demo: $(INSTALLED)
	$(BIN)/dfcompile examples/lenet/model.py --pes 16,128
	$(BIN)/dfcompile examples/lenet/model.py --pes 16,128 --expand published --system contention-free

test: check
	$(BIN)/pytest -q $(PARALLEL)

# What is told by tests of single modules alone.
unit: $(INSTALLED)
	$(BIN)/pytest -q $(PARALLEL_UNIT) tests/unit

check: $(INSTALLED) docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	rm -rf build/wheel
	$(BIN)/python -m build --wheel --no-isolation --outdir build/wheel .
	$(BIN)/check-wheel-contents build/wheel

# The site in build/site; open build/site/index.html. Not --quiet: that hides the warnings from --strict as well.
docs: $(INSTALLED)
	$(BIN)/mkdocs build --strict --site-dir build/site

# Pictures of the site and of charts in build/screenshots, and a check that nothing is cut off; those of pages of --html
# and of a circuit's waves in docs/screenshots, which README and docs show. Needs Chromium on PATH, and Icarus or
# Verilator (apt-get install chromium iverilog).
screenshots: docs
	$(BIN)/python -m tests.website.screenshots
	$(BIN)/python -m tests.website.charts
	$(BIN)/python -m tests.website.page_pictures
	$(BIN)/python -m tests.website.waves

# 20,000 models, 5,000 DAGs, 5,000 set-up and system files, 3,000 quantised language models; less or again: make fuzz FUZZ='--count 1000 --seed 7'
fuzz: $(INSTALLED)
	$(BIN)/python -m tests.fuzz $(FUZZ)

# Property tests with 100 times as many examples as in `make test`, drawn anew, all cases compiled, then the fuzzer: hours.
nightly: $(INSTALLED)
	PROPERTY_EXAMPLES=20 $(BIN)/pytest -q $(PARALLEL) tests/unit tests/compiled tests/whole/test_traffic_bounds.py
	$(BIN)/python -m tests.fuzz $(FUZZ)

# Circuits of 10,000 random schedules, simulated: half an hour. Fewer, or others: make rtl RTL='--count 1000 --seed 7'
rtl: $(INSTALLED)
	$(BIN)/python -m tests.rtl --count 10000 --printed $(RTL)

# 140 wrong versions of the package: the unit tests have to notice 126 at least. Less: make mutants MUTANTS='checkers'
mutants: $(INSTALLED)
	$(BIN)/python -m tests.mutants $(MUTANTS)

# Every model of benchmarks/models from every source, verified: hours. Less: make models MODELS='swin_t --sources py'
models: $(INSTALLED)
	$(BIN)/python -m benchmarks.model_rows $(MODELS)

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks.command_line
	$(BIN)/python -m benchmarks.bounds
	$(BIN)/python -m benchmarks.designs
	$(BIN)/python -m benchmarks.scheduler

clean:
	rm -rf $(VENV) build

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "python3 is not on PATH: 3.11 or newer is needed" >&2; exit 1; }
	@$(PYTHON) -c 'import platform, sys; sys.exit(sys.version_info < (3, 11) and "python3 is " + platform.python_version() + ": 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	# torch alone and first: the resolver then takes the CPU build where one is offered.
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --editable '.[torch,highs,oracle,proofs,dev]'
	@touch $@
