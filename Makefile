# The few verbs of passnet. `make demo` and `make test` set up everything they need in .venv.
PYTHON ?= python3
# The torch to install where none is in .venv yet. It comes first and alone, so that pip takes the
# build that fits the machine; PIP_ARGS can name another index, for example that of the CPU builds.
TORCH ?= torch==2.13.0
PIP_ARGS ?=
BIN := .venv/bin
# Commands that tests start load compiled files, also where the environment says not to write any.
RUN := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)

.PHONY: demo train-demo test-quick test test-all fuzz lint docs bench gpu clean

# With torch fixed, no other package can replace it by a larger build.
.venv/core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/pip install -q $(PIP_ARGS) $(TORCH)
	$(BIN)/python -c "import torch; print('torch==' + torch.__version__)" > .venv/constraints.txt
	$(BIN)/pip install -q $(PIP_ARGS) -c .venv/constraints.txt -e .
	touch $@

.venv/dev: .venv/core
	$(BIN)/pip install -q $(PIP_ARGS) -c .venv/constraints.txt -e '.[dev,models]'
	touch $@

demo: .venv/core
	rm -rf runs/demo runs/demo-small
	$(BIN)/passnet bench run --suite demo --out runs/demo --seconds 0.4 \
	  --candidate eager --candidate null --candidate null@direct \
	  --candidate examples/passes --candidate examples/passes@direct
	$(BIN)/passnet bench run --suite demo-small --out runs/demo-small --seconds 0.2 \
	  --candidate eager --candidate inductor --candidate inductor@direct \
	  --candidate examples/passes --candidate examples/passes@direct
	rm -rf runs/demo-in-net
	$(BIN)/passnet bench apply examples/passes --suite demo --task rotary_embedding --seconds 0.2 \
	  --out runs/demo-in-net

.venv/train: .venv/core
	$(BIN)/pip install -q $(PIP_ARGS) -c .venv/constraints.txt -e '.[train]'
	touch $@

# An LLM from nothing on the shipped training data, judged on tasks that it has not seen: 22 minutes
# on one core, without a network.
train-demo: .venv/train
	rm -rf runs/train
	$(RUN)/passnet train sft training --out runs/train/untrained --untrained
	$(BIN)/passnet train sft training --out runs/train/sft --structures 8000 --copies 2
	$(RUN)/passnet train evaluate --suite passbench-v1 --tasks 60 --data training --teacher \
	  runs/train/untrained runs/train/sft --draw 8 --check --out runs/train/evaluation \
	  --figure runs/train/curves.svg

# Much of what tests do is to wait for processes, hence one more process than the machine of the goal
# has cores. Three tiers: in seconds, at each save; in some seven minutes on two cores, for each change;
# and everything, those marked slow too.
QUICK := tests/test_layers.py tests/test_replay.py tests/core/records tests/judge/score tests/pages/tables \
  tests/graph/test_parse.py tests/graph/test_roundtrip.py tests/graph/test_meta_files.py \
  tests/passes/test_match.py tests/passes/test_rewrite.py tests/passes/test_normalise.py \
  tests/judge/test_verdict.py tests/judge/test_findings.py tests/judge/test_compare.py \
  tests/judge/test_estimate.py tests/core/jobs/test_run_folder.py

test-quick: .venv/dev
	$(RUN)/python -m pytest -n 0 -m "not slow" $(QUICK)

test: .venv/dev
	$(BIN)/python -m compileall -q src
	$(RUN)/python -m pytest -n 3 --dist loadgroup -m "not slow"

test-all: .venv/dev
	$(RUN)/python -m pytest -n 3 --dist loadgroup

# All readers of strangers' files, each for FUZZ_SECONDS: any error that is not ours, a process that
# ends, half a GiB of memory or 20 seconds for one input is a fault, told by the number of its input.
FUZZ_SECONDS ?= 300

fuzz: .venv/dev
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(RUN)/python -m tests.fuzz.fuzzing

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check

.venv/docs: .venv/core
	$(BIN)/pip install -q $(PIP_ARGS) -c .venv/constraints.txt -e '.[docs]'
	touch $@

# The documentation as a site, with the reference of the API, in runs/docs; a warning ends it.
docs: .venv/docs
	$(BIN)/python -m mkdocs build --strict -d runs/docs

# Which tables to print. There are also `calls`, and `variants`, `agent` and `jobs`, which take long, and
# `python -m benchmarks.query DATASET`.
BENCH ?= spine fusion cutting judge_cost

bench: .venv/dev
	for each in $(BENCH); do $(RUN)/python -m benchmarks.$$each || exit 1; done

# All that needs a GPU, in steps of at most eight minutes in the order of their worth. A call goes on
# where the last one stopped; `make gpu STEP=aa` runs one, `make gpu STEP=--table` prints all so far.
STEP ?=

gpu: .venv/dev
	$(RUN)/python -m benchmarks.gpu $(STEP)

clean:
	rm -rf .venv runs
