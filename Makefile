# `make demo` shows Ottla at work, `make test` proves it; both set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DECLARED := $(shell find src/ottla -name '*.pxd')

.PHONY: demo test setup tools lint interop soak bench bench-quick pins clean

setup: $(VENV)/.ready

$(VENV)/.ready: requirements/dev.txt pyproject.toml setup.py $(wildcard src/ottla/records/kernel*.py) $(DECLARED) $(wildcard $(DECLARED:.pxd=.py))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

demo: setup
	$(BIN)/python -m examples.orders_story

# No Python packages: taken from Debian when we may install them, else their tests are skipped and say so.
TOOLS := kcat zsh fish
tools:
	@missing=; for tool in $(TOOLS); do command -v $$tool >/dev/null || missing=1; done; \
	if [ -n "$$missing" ] && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		apt-get -qq update && apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $(TOOLS); \
	fi >/dev/null 2>&1 || true

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: setup tools lint
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not interop and not slow"

# Clients in other languages (Java, Go, Node): jars, modules and packages come from their registries.
interop: setup
	$(BIN)/python -m pytest -m interop

# More seeds of the randomised tests, and all that is compiled under the sanitizers.
soak: setup
	$(BIN)/python -m pytest -m slow

# Ottla against Apache Kafka (java, mvn and cc are needed): everything (an hour); or the main rows.
bench: setup
	$(BIN)/python -m benchmarks.against_kafka

bench-quick: setup
	$(BIN)/python -m benchmarks.against_kafka --quick

pins:
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --no-annotate requirements/dev.in -o requirements/dev.txt

clean:
	rm -rf $(VENV) build dist .demo .bench .interop
