# The front door. `make` alone lists what there is.

PYTHON ?= python3
BIN := .venv/bin
# How many processes share the unit tests; tests with a real engine run one at a time.
WORKERS ?= auto
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help setup golden local up review browser test chaos check format clean-local clean requirements
.NOTPARALLEL:

help: ## list these commands
	@echo 'Usage: make COMMAND'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-15s %s\n", $$1, $$2}'

setup: ## install everything into .venv: pinned packages, vt, pulumi
	@$(PYTHON) tools/setup.py

golden: setup ## write tests/golden/*.yaml anew from what the stacks preview
	@UPDATE_GOLDEN=1 $(PYTEST) -q tests/golden -k inventory

local: setup ## run the whole thing here: local cloud, pulumi up, training, results
	@$(BIN)/vt local up

up: setup ## vt up of a stack: make up STACK=dev ARGS='--yes --diff'
	@$(BIN)/vt up --stack $(or $(STACK),$(error say which stack: make up STACK=dev)) $(ARGS)

test: setup ## run all tests: unit, golden, policy, browser, end to end
	@./tools/run-tests "$(PYTEST)" "$(WORKERS)"

chaos: setup ## prove that submissions survive: kills, faults, races (QUICK=1: a sample; SEED=N)
	@$(BIN)/python -m bench.chaos $(if $(QUICK),--quick) $(if $(SEED),--seed $(SEED))

check: setup ## lint, formatting, types, import contracts, workflows; changes nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	@$(PYTHON) tools/actionlint.py
	$(BIN)/actionlint
	$(BIN)/zizmor --offline --pedantic --no-progress --quiet .

format: setup ## format the code and fix what can be fixed safely
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

review: setup ## tell what a stack's next `pulumi up` does (STACK=dev; FLAGS='--format html -o page.html')
	@$(BIN)/vt review --stack $(STACK) $(FLAGS)

browser: ## find a Chromium for the tests of pages, or install one (Debian, as root)
	@$(PYTHON) tools/browser.py

clean-local: setup ## stop the local cloud and remove its files
	@$(BIN)/vt local down --clean

clean: ## remove .venv and the caches in this folder (make clean-local goes first)
	rm -rf .venv .build .pytest_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info build dist

requirements: ## compile requirements/*.txt anew from *.in (UPGRADE=1: newest versions)
	$(BIN)/python tools/compile_requirements.py $(if $(UPGRADE),--upgrade)
