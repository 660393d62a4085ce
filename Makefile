# The few things one does with this project. `make run` and `make test` do all their own set-up
# from a bare clone: Python 3.11 or newer and make are enough.

PYTHON ?= python3
PIP    := 26.3
BIN    := .venv/bin
READY  := .venv/.ready

# Compiled modules are kept: without them each worker compiles every test, and each process of a
# test the package. Where the environment forbids that, it is allowed again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup run test check format bench docs conformance interop browser properties fuzz soak clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## The environment in .venv (every other verb makes it when needed)

run: $(READY) ## The main job on real input: our server, client and host, other people's, five revisions
	$(BIN)/python examples/tour.py

# A quarter of all tests stand in folders that need something from outside: they are not even read.
test: $(READY) ## Every test that needs nothing from outside; PYTEST='-k name' narrows it
	$(BIN)/python -m pytest -q -n 4 --ignore=tests/interop --ignore=tests/browser --ignore=tests/balancers \
	  -m "not interop and not browser and not redis and not balancers" $(PYTEST)

check: $(READY) ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## Let ruff write the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## Ratios against other implementations, into bench/RESULTS.md; BENCH=--short for less
	$(BIN)/python bench/run.py $(BENCH)

docs: $(READY) ## The documentation site into site/, built and checked
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	$(BIN)/python -m pytest -q tests/docsite
	$(BIN)/python tools/docs.py

conformance: $(READY) ## The official conformance suite against our server, our client and our gateway (node)
	$(BIN)/python tests/conformance/run.py $(CONFORMANCE)

interop: $(READY) ## Against other implementations, each in an environment under .peers/
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m interop tests $(PYTEST)

browser: $(READY) ## The pages of the authorization server and the console in Chromium, which is installed if it can be
	$(BIN)/python tools/browser.py $(PYTEST)

properties: $(READY) ## Every property with all its examples; `make test` tries a part of them
	EXAMPLES=all $(BIN)/python -m pytest -q -n 2 -m "hypothesis and not (interop or browser or redis or balancers)" tests $(PYTEST)

fuzz: $(READY) ## Throw bytes at the pure core; FUZZ="frames --seconds 600" for one, longer
	$(BIN)/python tests/fuzz/run.py $(FUZZ)

soak: $(READY) ## Ten thousand visits that must leave nothing behind; SOAK="--visits 1000 --seconds 60" for others
	$(BIN)/python tests/soak/run.py $(SOAK)
	$(BIN)/python tests/soak/fleet.py
	$(BIN)/python tests/soak/killed.py

clean: ## Back to a bare clone
	rm -rf .venv .peers .conformance .fuzz .docs site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is older than pyproject.toml or constraints.txt when they changed: then install again.
# pip is raised first because `--group` needs 25.1 and a bare machine may bring 23.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "isthmus needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip==$(PIP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	@touch $@
