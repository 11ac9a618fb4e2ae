# Every target does its own set-up; `make help` lists them.
SHELL := /bin/sh
.SHELLFLAGS := -eu -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
STAMPS := $(VENV)/stamps
# The first interpreter that is new enough, else python3, which then says what is missing.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; exit; }; done; echo python3)
AREA ?= demo
QUICK ?=
SPEED ?=
NODES ?=
KEEP ?=
LONG ?=
# Test runs on clusters side by side, each with one of its own: they wait for most of their time.
LANES ?= 2

.PHONY: help setup demo demo-cluster test slow test-cluster check lint show render cluster cluster-status cluster-down clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMPS)/bytecode ## environment in .venv: packages, PyTorch, Horovod (built once, kept in your cache)

$(STAMPS)/venv: deploy/setup/venv.py
	@$(PYTHON) deploy/setup/venv.py $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/packages: pyproject.toml constraints.txt deploy/setup/packages.py $(STAMPS)/venv
	@$(PY) -m deploy.setup.packages
	@touch $@

$(STAMPS)/horovod: deploy/horovod/build.py deploy/horovod/repairs.py deploy/horovod/cxx deploy/horovod/source.txt $(STAMPS)/packages
	@$(PY) -m deploy.horovod.build
	@touch $@

$(STAMPS)/bytecode: deploy/setup/bytecode.py $(STAMPS)/horovod
	@$(PY) -m deploy.setup.bytecode
	@touch $@

demo: setup ## five elastic jobs on four virtual GPU slots of this machine, live, with a report at the end
	@$(VENV)/bin/voda demo

demo-cluster: setup ## the same jobs on real Kubernetes and Argo Workflows, on this computer; KEEP=1 leaves all of it up
	@$(PY) -m tests.cluster.demo $(if $(KEEP),--keep)

test: setup ## the fast tests: unit, laws, scenarios, theory, contract, documentation, a short life end to end
	@$(PY) -m pytest -m "not slow and not cluster"
	@echo "not among these: make slow, make test-cluster ($$($(PY) -m tests.cluster check 2>&1))"

slow: setup ## the slow tests: whole lives of jobs in local mode, hurt in several ways
	@$(PY) -m pytest -m slow

test-cluster: setup ## the tests on real Kubernetes and Argo, on this computer; skipped with the reason where that cannot be
	@if $(PY) -m tests.cluster check >/dev/null 2>&1; then $(PY) -m tests.cluster build >/dev/null; fi
	@$(PY) -m pytest -m "cluster$(if $(LONG),, and not long)" -rs -n $(LANES) --dist loadfile --no-loadscope-reorder

check: lint ## style, types, import layers, Python 3.9 for the runtime, and the tests that take no time
	@$(PY) -m pytest -m "not slow and not cluster" tests/unit tests/quality tests/scenarios tests/theory

lint: setup ## the same without tests
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/ruff format --check --quiet . || { echo "run: $(VENV)/bin/ruff format ."; exit 1; }
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-logo
	@$(VENV)/bin/vermin --quiet --no-tips --violations --eval-annotations -t=3.9- voda_flows/runtime

show: setup ## figures that must hold, measured: make show AREA=demo, QUICK=1 for a small sample
	@$(PY) -m tests.show $(AREA) $(if $(QUICK),--quick) $(if $(filter shown,$(SPEED)),--speed-is-shown)

cluster: setup ## real Kubernetes and Argo Workflows on this computer: make cluster NODES=3x2 (needs root, Go; README in tests/cluster)
	@$(PY) -m tests.cluster up $(if $(NODES),--nodes $(NODES))

cluster-status: setup ## what runs of that cluster
	@$(PY) -m tests.cluster status

cluster-down: setup ## take that cluster down; nothing of it is left
	@$(PY) -m tests.cluster down

render: setup ## write templates/ anew from the Hera definitions
	@$(PY) -m voda_flows.render

clean: ## remove the environment and every cache in this folder (built wheels in your cache stay)
	rm -rf $(VENV) .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
