# `make help` lists the targets. The work is done by tools/.

GPUFLEET_VENV ?= $(HOME)/.cache/gpufleet-venv
export GPUFLEET_VENV
PYTHON := $(GPUFLEET_VENV)/bin/python
export PATH := $(GPUFLEET_VENV)/bin:$(PATH)

SUITE := $(PYTHON) tools/suite.py
SUITE_OPTIONS := $(if $(ONLY),--only $(ONLY)) $(if $(LIST),--list)
INVENTORY ?= inventories/sandbox

.DEFAULT_GOAL := help
.PHONY: help setup check test test-full demo lab-up lab-down lab-status docs changelog requirements gpu-health bench \
        build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing on this machine
	@tools/setup

check: setup ## lint, sanity, unit tests (ONLY="step …" runs some, LIST=1 names them)
	@$(SUITE) check $(SUITE_OPTIONS)

test: setup ## check, then the sandbox's own tests and every molecule scenario
	@$(SUITE) test $(SUITE_OPTIONS)

test-full: setup ## test with the long variants: the images of all systems, 20,000 damaged outputs instead of 540
	@$(SUITE) full $(SUITE_OPTIONS)

molecule-%: setup ## one molecule scenario, e.g. molecule-base (KEEP=1 leaves its hosts running)
	@$(PYTHON) tools/scenario.py $* $(if $(KEEP),--keep)

demo: setup ## simulated bare 8-GPU servers become verified ones, then one GPU breaks
	@tools/demo

lab-up: setup ## start the sandbox's hosts of INVENTORY (inventories/sandbox)
	@tests/sandbox/lab up $(INVENTORY)

lab-down: setup ## remove them
	@tests/sandbox/lab down $(INVENTORY)

lab-status: setup ## show them
	@tests/sandbox/lab status $(INVENTORY)

docs: setup ## write what is generated: READMEs of the roles, docs/health-findings.md, docs/stack.md
	@$(PYTHON) tools/generate_docs.py
	@$(PYTHON) tools/generate_health_docs.py
	@$(PYTHON) tools/generate_stack_docs.py

changelog: setup ## take changelogs/fragments and new plugins into this version of the changelog
	@antsibull-changelog release --update-existing --reload-plugins
	@antsibull-changelog reformat

requirements: setup ## compile requirements-dev.txt
	@$(PYTHON) tools/compile_requirements.py

gpu-health: setup ## build/gpu-health, the node's own judge, one file
	@$(PYTHON) tools/build_gpu_health.py build/gpu-health

bench: setup ## measure the ratios that the design promises
	@$(PYTHON) tests/bench/bench.py all

build: setup ## the collection's artifact, in build/
	@mkdir -p build
	@$(PYTHON) tools/artifact.py build

clean: ## remove what was built here; caches in ~/.cache stay
	@rm -rf build reports .pytest_cache .ruff_cache .hypothesis .cache changelogs/.plugin-cache.yaml
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
