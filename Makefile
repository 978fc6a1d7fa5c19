# make demo    compile the detector example and say where the results are
# make test    the tests
# make check   lint, format, types, import contracts, then the tests: what CI runs
# make judges  10,000 random schedules before three judges, and every example, target, wait and fault on the emulator
# make format, make schemas, make golden, make nightly, make random-runs, make clean

VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
PYTEST_FLAGS ?=

.PHONY: demo test check lint format schemas golden judges nightly soak random-runs clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	$(BIN)/dagsched compile examples/detector.yaml
	$(BIN)/dagsched graph examples/detector.yaml -o build/detector/detector.svg
	@echo
	@echo "The results are in build/detector/:"
	@ls build/detector

test: $(VENV)/.installed-dev
	$(BIN)/pytest -n $(WORKERS) $(PYTEST_FLAGS)

check: lint test

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

# The two JSON schemas that editors read.
schemas: $(VENV)/.installed-dev
	$(BIN)/python -m dagsched.schemas schemas

# Rewrite the golden files; read the difference before you keep it.
golden: $(VENV)/.installed-dev
	$(BIN)/pytest -q --rewrite-golden $(PYTEST_FLAGS)
	$(BIN)/dagsched graph examples/detector.yaml -o docs/images/detector.svg

# The checker, brute force and the adversary must say the same of 10,000 random schedules (some minutes). Then every
# example in every target on the emulator: for several counts under ThreadSanitizer, without any one of its waits, and
# with every op met by every kind of fault; and by every compiler without a warning (40 minutes where others keep both
# cores busy).
judges: $(VENV)/.installed-dev
	$(BIN)/pytest tests/proof/test_judges.py --hypothesis-profile nightly $(PYTEST_FLAGS)
	$(BIN)/pytest tests/emulator/test_judges.py --hypothesis-profile nightly $(PYTEST_FLAGS)

# A long run in which nothing may grow, and ten thousand random plans with random sleeps (an hour or so).
soak: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.soak
	DAGSCHED_RUN_PLANS=10000 $(BIN)/pytest -q tests/run/test_meaning.py -k random
	DAGSCHED_RUN_PLANS=1000 $(BIN)/pytest -q tests/run/test_rounds.py -k random

# The same tests with many more random plans (an hour or so).
nightly: $(VENV)/.installed-dev
	$(BIN)/pytest -n $(WORKERS) --hypothesis-profile nightly $(PYTEST_FLAGS)

# 300 random plans emitted, built, run on the emulator and compared with their meaning, in every target (an hour or so).
random-runs: $(VENV)/.installed-dev
	$(BIN)/pytest -q tests/emulator/test_run.py -k random_plans --hypothesis-profile nightly $(PYTEST_FLAGS)
	DAGSCHED_RANDOM_PLANS=300 $(BIN)/pytest -q tests/emit/test_pyacl_run.py -k random_plans $(PYTEST_FLAGS)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './.git/*' -exec rm -rf {} +

# A virtual environment for users (.installed) and for developers (.installed-dev). Both are brought up to date when
# pyproject.toml changes; an environment whose interpreter is gone is made anew.
$(VENV)/.installed: pyproject.toml
	@sh tools/make_venv.sh $(VENV) .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml
	@sh tools/make_venv.sh $(VENV) '.[test,dev,optimal]'
	@touch $@ $(VENV)/.installed
