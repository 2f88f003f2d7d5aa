# The commands of this repository. `make` without arguments lists them.

PYTHON ?= python3
BIN := .venv/bin
# Number of test processes (auto: see tests/conftest.py).
WORKERS ?= auto
# Values from users and workflows are text: make does not expand them, and the shell gets them quoted.
GIVEN := STACK ARGS FLAGS LEVELS SOURCE COMMIT DIGEST VT_APPROVAL REFRESH DEPLOY ENDPOINT UPGRADE \
	WORKERS STORIES BASE QUICK PART SEED COUNT SET TAG AT GITHUB_ACTIONS GITHUB_STEP_SUMMARY
$(foreach name,$(GIVEN),$(eval override $(name) := $$(value $(name))))
export STACK COMMIT DIGEST VT_APPROVAL TAG GITHUB_STEP_SUMMARY
text = '$(subst ','\'',$(1))'
every_word = $(foreach word,$(1),$(call text,$(word)))
STACK_OR_STOP = $(call text,$(or $(STACK),$(error STACK is not set. Hint: make $@ STACK=dev)))
# Common prefix of the report files of a stack.
REPORT = .build/reports/$(STACK_OR_STOP)
# LEVELS=FILE overrides policy levels of the stack file.
POLICIES := --policy-pack policy $(if $(LEVELS),--policy-levels $(call text,$(LEVELS)))
PYTEST := $(BIN)/python -m pytest

# In steps with these commands, GitHub's runner must not execute lines of plans, logs or names (::set-output …).
TOLD := report preview comment approval preflight deploy drift drift-issue deployed advance images images-request images-comment
$(if $(GITHUB_ACTIONS),$(if $(filter $(TOLD),$(MAKECMDGOALS)),\
	$(info ::stop-commands::$(shell od -An -N16 -tx1 /dev/urandom | tr -d ' \n'))))

.DEFAULT_GOAL := help
.PHONY: help setup golden recordings state local up review browser picture containers languages test lowest quick bench chaos mutants check format site clean-local clean requirements
.PHONY: report preview comment approval preflight deploy drift drift-issue deployed advance images images-request images-comment
.PHONY: release publish
.NOTPARALLEL:

help: ## list these commands
	@echo 'Usage: make COMMAND'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-15s %s\n", $$1, $$2}'

setup: ## install everything into .venv: packages, vt, pulumi (DEPLOY=1: for deployments only)
	@$(PYTHON) tools/setup.py $(if $(DEPLOY),--deploy)

golden: setup ## regenerate tests/golden/*.yaml from previews of the stacks
	@UPDATE_GOLDEN=1 $(PYTEST) -q tests/golden -k inventory

recordings: setup ## record the plans of tests/golden/recorded and their reports again (10 minutes)
	@RECORD=1 UPDATE_GOLDEN=1 $(PYTEST) -q tests/golden/test_recorded_reviews.py

state: setup ## record a state of this version in tests/fixtures/state (before a release)
	@RECORD=1 $(PYTEST) -q tests/e2e/test_recorded_state.py

local: setup ## start the local cloud, run pulumi up, train (ENDPOINT=1: serve the model)
	@$(BIN)/vt local up $(if $(ENDPOINT),--endpoints jobs/titanic/serve/stack.yaml)

up: setup ## run vt up for a stack: make up STACK=dev ARGS='--yes --diff'
	@$(BIN)/vt up --stack $(STACK_OR_STOP) $(call every_word,$(ARGS))

report: setup ## STACK=S: review a deployment offline, against an empty state: .build/reports/S.md, .html
	@./tools/report $(REPORT) $(STACK_OR_STOP) --offline $(POLICIES)

preview: setup ## STACK=S: review a deployment against the stack's state; `make deploy` requires this plan
	@./tools/report $(REPORT) $(STACK_OR_STOP) $(POLICIES) $(if $(REFRESH),--refresh)

comment: setup ## STACK=S: comment on a pull request with its preview's report (in the workflow report)
	@$(BIN)/vt github comment --stack $(STACK_OR_STOP) -o .build/kept/approval.json

approval: setup ## STACK=S [DIGEST=D]: write the approval of report D, else of the merged pull request's report
	@if [ -n "$$DIGEST" ]; then $(BIN)/vt approval --stack $(STACK_OR_STOP) -o $(REPORT).approval.json -- "$$DIGEST"; \
	else $(BIN)/vt github approval --stack $(STACK_OR_STOP) -o $(REPORT).approval.json; fi

preflight: setup ## STACK=S: check whether Google Cloud would refuse a deployment; changes nothing
	@code=0; $(BIN)/vt preflight --stack $(STACK_OR_STOP) -o $(REPORT).preflight || code=$$?; \
	if [ -n "$$GITHUB_STEP_SUMMARY" ] && [ -f $(REPORT).preflight.md ]; then \
		cat $(REPORT).preflight.md >>"$$GITHUB_STEP_SUMMARY"; fi; exit $$code

deploy: setup ## STACK=S: deploy if the plan equals the approved plan (REFRESH=1: undo drift)
	@exec $(BIN)/vt deploy --stack $(STACK_OR_STOP) $(POLICIES) $(if $(REFRESH),--refresh) \
		$(if $(VT_APPROVAL),,--approval $(REPORT).approval.json)

images: setup ## STACK=S [SOURCE=DIR COMMIT=ID]: build missing images, and pin their digests
	@cd $(call text,$(or $(SOURCE),.)) && if [ -n "$$COMMIT" ] && [ "$$(git rev-parse HEAD)" != "$$COMMIT" ]; then \
		echo "make images: $$PWD is not at commit $$COMMIT" >&2; exit 1; fi; \
	exec $(CURDIR)/$(BIN)/vt images build \
		--stack $(STACK_OR_STOP) \
		$(if $(SOURCE),--target-of $(CURDIR) --engine cloud-build)

images-request: setup ## start the workflow that builds a branch's images, if their folders changed (in a workflow)
	@VT=$(BIN)/vt PYTHON=$(BIN)/python ./tools/images-request

images-comment: setup ## write the digests that `make images` pinned to a branch's pull request (in a workflow)
	@./tools/images-comment

drift: setup ## STACK=S: compare the cloud with the declared resources: .build/reports/S.drift.md
	@$(BIN)/vt drift --stack $(STACK_OR_STOP) -o $(REPORT).drift

deployed: ## STACK=S: print the commit of main that was last deployed (in a workflow)
	@$(PYTHON) tools/deployed_commit.py $(STACK_OR_STOP)

advance: setup ## STACK=S: submit due schedule slots (in a workflow, by a timer)
	@$(BIN)/vt jobs advance --stack $(STACK_OR_STOP)

drift-issue: setup ## STACK=S: update the stack's issue on drift (in a workflow)
	@$(BIN)/vt github drift --stack $(STACK_OR_STOP) $(REPORT).drift.md

test: setup ## run the tests, with one long story of each kind (STORIES=all: with all stories)
	@VT_TESTS_STORIES=$(call text,$(STORIES)) ./tools/run-tests "$(PYTEST)" $(call text,$(WORKERS))

lowest: setup ## run the program's unit tests with its oldest supported packages (AT=3.14: with pinned packages, on that Python)
	@./tools/test-elsewhere $(if $(AT),python-$(call text,$(AT)) $(call text,$(AT)) requirements/dev.txt,lowest 3.11 requirements/lowest.txt)

quick: setup ## run unit and golden tests that a change can break, at most 90 s (BASE=REV: compare with REV)
	@$(BIN)/python tools/quick.py --workers $(call text,$(WORKERS)) $(if $(BASE),--base $(call text,$(BASE)))

bench: setup ## run each measurement of bench/ once, at its smallest size
	@$(PYTEST) -q tests/e2e/test_bench.py

chaos: setup ## test that submissions survive kills, faults and races (QUICK=1: a sample; PART=jobs, tuning, batch, serving, snapshots, schedule or ladder; SEED=N)
	@GRPC_VERBOSITY=ERROR $(BIN)/python -m bench.chaos $(if $(QUICK),--quick) $(if $(PART),--part $(call text,$(PART))) \
		$(if $(SEED),--seed $(call text,$(SEED)))

mutants: setup ## change product code at random, and check that tests fail (COUNT=N, SEED=N, BASE=REV, SET=guards)
	@$(BIN)/python -m tests.mutants --count $(call text,$(or $(COUNT),200)) --seed $(call text,$(or $(SEED),20261122)) \
		$(if $(BASE),--base $(call text,$(BASE))) $(if $(SET),--set $(call text,$(SET)))

check: setup ## check lint, formatting, types, import contracts and workflows; changes nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(PYTEST) -q --no-header tests/unit/structure
	@./tools/go-programs actionlint
	PATH="$(CURDIR)/$(BIN):$$PATH" actionlint
	HOME=$${HOME:-/} $(BIN)/zizmor --offline --pedantic --no-progress --quiet .
	$(BIN)/hadolint jobs/*/Dockerfile*

format: setup ## format the code and apply safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

review: setup ## review a stack's next `pulumi up` (STACK=dev; FLAGS='--format html -o page.html')
	@$(BIN)/vt review --stack $(STACK_OR_STOP) $(call every_word,$(FLAGS))

browser: ## find a Chromium for browser tests, or install one (Debian, as root)
	@$(PYTHON) tools/system_programs.py browser

picture: setup ## render docs/images/review.png again from a review page (after make browser)
	@UPDATE_GOLDEN=1 $(PYTEST) -q tests/browser/test_review_page.py -k screenshot

containers: setup ## find programs that build and store images for the local cloud, or install them (Debian, as root)
	@$(BIN)/python tools/system_programs.py containers

languages: setup ## find Pulumi's language hosts for YAML and Node.js, or build them (Go)
	@./tools/go-programs languages

release: setup ## build wheels, plugin archives and SHA256SUMS into dist/ (TAG=vX: refused if a version is not X)
	@$(BIN)/python tools/release.py

publish: ## TAG=vX: publish the files of `make release` on a GitHub release page (in a workflow)
	@./tools/publish

site: setup ## build docs/ as a site with search: .build/site/docs/site/index.html
	@$(BIN)/python -m sphinx -q -W --keep-going -j auto -c docs/site -d .build/site-trees . .build/site

clean-local: setup ## stop the local cloud and remove its files
	@$(BIN)/vt local down --clean

clean: ## remove .venv and the caches in this folder (run make clean-local first)
	rm -rf .venv .build .pytest_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info build dist

requirements: ## compile requirements/*.txt from *.in again (UPGRADE=1: newest versions)
	$(BIN)/python tools/compile_requirements.py $(if $(UPGRADE),--upgrade)
