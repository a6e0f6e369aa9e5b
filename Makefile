# One page of targets, which call programs in scripts/, build_backend/ and bench/. `make help` lists the targets.
# Everything runs in one virtual environment outside the checkout, which is made when first needed (scripts/venv.sh).

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Which Python: make demo PYTHON=3.12. Without it, the newest of DEFAULTS in build_backend/native.py that is found.
PYTHON ?=
# What test-all, test-sample and wheels visit: PYTHONS="3.12 3.13", or PYTHON if it is given, or all.
PYTHONS ?= $(if $(PYTHON),$(shell PYTHON=$(PYTHON) scripts/find_python.sh --version))
PYTHONS := $(PYTHONS)
ifeq ($(PYTHON),)
override PYTHON := $(shell scripts/find_python.sh --version)
endif
export PYTHON
# The targets test and measure translating, so no translation is loaded from a file.
GODYNAMO_CACHE_DIR ?= 0
export GODYNAMO_CACHE_DIR
VENV := $(shell PYTHON=$(PYTHON) scripts/venv.sh --path)
PY := $(VENV)/bin/python
GO_ENV := PYTHON=$(PY) scripts/go_env.sh
# Packages that do not need CPython. They build and test with CGO_ENABLED=0.
PURE := $(shell scripts/go_packages.sh pure 2>/dev/null)
CGO_PACKAGES := $(shell scripts/go_packages.sh cgo 2>/dev/null)
C_FILES := $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')
GO_FILES := $(shell git ls-files --cached --others --exclude-standard '*.go')
PYTEST_ARGS ?=
JOBS ?= 2

.PHONY: help venv build demo demo-breaks test test-go test-embed test-python test-heavy test-all test-stored test-sample wheels bench lint lint-go lint-c lint-python format generate \
	golden fuzz-language fuzz-torch fuzz-training fuzz-sizes fuzz-signals fuzz-signals-sanitized fuzz-mutation fuzz-cache roundtrip identity cpython opinfo modules paritybench models warm first-calls aside pgo sizes old-torch gpu conformance check clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

venv: ## make or update the shared virtual environment
	@scripts/venv.sh >/dev/null

# Bytecode files are written even if PYTHONDONTWRITEBYTECODE is set. Without them each process compiles the package.
build: venv ## compile _C and the Go library into python/godynamo/
	@ls python/godynamo/libgodynamo-*.so >/dev/null 2>&1 || echo "building: the C core, the Go library and the tools; the first time takes 1 to 5 minutes"
	@mkdir -p build && flock build/.lock $(PY) setup.py --quiet egg_info build_ext --inplace
	@$(PY) -m compileall -q python/godynamo

demo: build ## run a toy example: graphs, guards, 100 calls, hits and misses
	@echo "running the demo: it imports torch first, a few seconds"
	@$(PY) scripts/demo.py

demo-breaks: build ## show the graphs before, inside and after code that cannot be captured, beside torch.compile's counts
	@$(PY) scripts/demo_breaks.py

test: build ## run all tests: Go, Go with an embedded CPython, pytest
	@PYTEST_ARGS='$(PYTEST_ARGS)' scripts/test.sh

test-go: ## run the Go tests of the packages that need no CPython
	CGO_ENABLED=0 go test $(PURE)

test-embed: venv ## run the Go tests that embed CPython
	$(GO_ENV) --embed go test -tags pyembed $(CGO_PACKAGES)

test-python: build ## run pytest on the built extension, on all cores: PYTEST_ARGS="-k word"
	@PYTEST_ARGS='$(PYTEST_ARGS)' scripts/pytest.sh

test-heavy: build ## run the tests that take minutes: memory over tens of thousands of functions, 64 processes at once
	GODYNAMO_HEAVY_TESTS=1 $(PY) -m pytest python/tests/processes python/tests/cache -k "many_more" $(PYTEST_ARGS)

test-stored: build ## run pytest twice over one folder of translations: STORED_TESTS="python/tests/language"
	@PYTEST_ARGS='$(PYTEST_ARGS)' STORED_TESTS='$(STORED_TESTS)' scripts/test_stored.sh

# Not the environment of $(PYTHON): each Python has its own, which these scripts make.
test-all: ## run all tests on each supported Python that is found: PYTHONS="3.12 3.13" for these only
	@$$(scripts/find_python.sh) scripts/test_all.py $(PYTHONS)

test-sample: ## run a short test of each supported Python that is found: demo, core, conformance, a part of language
	@$$(scripts/find_python.sh) scripts/test_sample.py $(PYTHONS)

wheels: ## build a wheel for each Python that is found into dist/, and try it where only torch is installed
	@$$(scripts/find_python.sh) scripts/wheels.py $(PYTHONS)

bench: build ## measure eager, torch.compile and godynamo side by side; writes bench/results/latest.json
	@$(PY) bench/run.py $(BENCH_ARGS)

lint: lint-go lint-c lint-python ## run gofmt, go vet, staticcheck, clang-format, ruff, mypy and stubtest

lint-go: venv
	@unformatted="$$(gofmt -l $(GO_FILES))"; if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi
	CGO_ENABLED=0 go vet $(PURE)
	$(GO_ENV) go vet $(CGO_PACKAGES)
	$(GO_ENV) --embed go vet -tags pyembed $(CGO_PACKAGES)
	$(GO_ENV) --embed go tool staticcheck -tags pyembed ./...

lint-c: venv
	$(VENV)/bin/clang-format --dry-run -Werror $(C_FILES)

lint-python: build
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	cd python && PYTHONPATH=. $(VENV)/bin/stubtest godynamo._C --mypy-config-file ../pyproject.toml
	cd python && PYTHONPATH=. $(VENV)/bin/stubtest godynamo --mypy-config-file ../pyproject.toml --allowlist ../scripts/stubtest_allowlist.txt

format: venv ## rewrite Go, C and Python in the house format
	gofmt -w $(GO_FILES)
	$(VENV)/bin/clang-format -i $(C_FILES)
	$(VENV)/bin/ruff check --fix --quiet .
	$(VENV)/bin/ruff format .

generate: venv ## rewrite the generated files
	PYTHON=$(PY) $(GO_ENV) go generate ./...
	$(PY) scripts/api_page.py
	$(PY) scripts/notices.py

# The flag -update is passed only to packages whose tests define it. Other tests would reject it.
golden: build ## rewrite the golden files, the shapes' examples and docs/cli.md; read the diff
	CGO_ENABLED=0 go test $(addprefix ./,$(sort $(dir $(shell git grep -l '"update"' -- '*_test.go')))) -update
	$(PY) scripts/shape_examples.py
	PYTHONPATH=python:python/tests $(PY) python/tests/golden/golden_files.py

old-torch: build ## test the same binary on an older torch, the oldest supported one or GODYNAMO_OLD_TORCH=2.11.0, in a separate environment
	@venv=$$(scripts/old_torch.sh) && "$$venv/bin/python" python/tests/processes/old_torch_smoke.py $$(scripts/old_torch.sh --version)

SEED ?= $(shell date +%s)
fuzz-language: build ## compare random programs with CPython and shrink those that differ: SEED=first N=how many
	@PYTHONPATH=$(CURDIR)/python $(PY) python/tests/fuzz/language/fuzz_run.py --seed $(SEED) --count $(or $(N),10000)

fuzz-torch: build ## compare random programs of tensors, modules and autograd with eager: SEED=first N=how many ARGS=--sizes
	@PYTHONPATH=$(CURDIR)/python $(PY) python/tests/fuzz/torch/fuzz_torch_run.py --seed $(SEED) --count $(or $(N),2000) $(ARGS)

fuzz-training: build ## compare random training steps (models, optimizers with random options, changes between steps) with eager: SEED=first N=how many
	@PYTHONPATH=$(CURDIR)/python $(PY) python/tests/fuzz/training/fuzz_training_run.py --seed $(SEED) --count $(or $(N),1000) $(ARGS)

fuzz-sizes: build ## compare random programs that compute with sizes, at other sizes in each call, with eager: SEED=first N=how many ARGS="--captures | --conditions"
	@PYTHONPATH=$(CURDIR)/python $(PY) python/tests/fuzz/sizes/fuzz_sizes_run.py --seed $(SEED) --count $(or $(N),2000) $(ARGS)

fuzz-signals: build ## send signals and other threads' exceptions at random points of random programs: SEED=first N=arrivals ARGS="--nomemory --malloc-debug"
	@PYTHONPATH=$(CURDIR)/python $(PY) python/tests/fuzz/signals/fuzz_signals_run.py --seed $(SEED) --count $(or $(N),20000) $(ARGS)

fuzz-signals-sanitized: venv ## run fuzz-signals with AddressSanitizer in both libraries
	@scripts/sanitized.sh $(PY) python/tests/fuzz/signals/fuzz_signals_run.py --seed $(SEED) --count $(or $(N),2000) $(ARGS)

fuzz-mutation: build ## compare random classes and containers, changed between two calls, with CPython: SEED=first N=how many
	@PYTHONPATH=$(CURDIR)/python $(PY) -W ignore python/tests/fuzz/mutation/mutation_run.py --seed $(SEED) --count $(or $(N),50000)

fuzz-cache: build ## damage stored translations, and edit the programs that they are made from: SEED=first N=how many ARGS="--only damage | edits"
	@PYTHONHASHSEED=0 PYTHONPATH=$(CURDIR)/python $(PY) -W ignore python/tests/fuzz/cache/cache_run.py --seed $(SEED) --count $(or $(N),10000) $(ARGS)

roundtrip: venv ## check lower(decode(f)) == f for every function of the standard library, torch and 2,000 random programs
	@scripts/roundtrip.sh

identity: roundtrip ## the older name of roundtrip

cpython: build ## run CPython's own test files with every function translated: FILES="test_with test_generators" CPYTHON_ARGS="--json F"
	@$(PY) python/tests/cpython/cpython_run.py $(CPYTHON_ARGS) $(FILES)

opinfo: build ## run the samples of torch's op_db forward and backward, and compare them with eager: OPS="nn.* add" N=samples per dtype OPINFO_ARGS=--sizes
	@$(PY) python/tests/torch_library/library_run.py ops --only "$(OPS)" $(if $(N),--samples $(N)) --json build/opinfo.json $(OPINFO_ARGS)

modules: build ## compare every module of torch.nn with eager, in training and evaluation: MODULES="RNN Conv*" N=inputs per mode
	@$(PY) python/tests/torch_library/library_run.py modules --only "$(MODULES)" $(if $(N),--samples $(N)) --json build/modules.json

paritybench: build ## compare modules of hundreds of projects with eager, from a checkout of pytorch-jit-paritybench: DIR=... ONLY="facebook*" N=modules per file
	@venv=$$(scripts/venv_models.sh) && GODYNAMO_PARITYBENCH_DIR="$(DIR)" "$$venv/bin/python" python/tests/torch_library/library_run.py paritybench --only "$(ONLY)" \
		--samples $(or $(N),100) --timeout 600 --json build/paritybench.json

models: build ## run the model zoo: correctness, graphs, speed beside eager and torch.compile: MODELS_ARGS="--only 'timm.*' --rounds 5"
	@venv=$$(scripts/venv_models.sh) && "$$venv/bin/python" bench/models/models_run.py $(MODELS_ARGS)

captured: build ## list what still splits in models, modules and examples, by reason; writes bench/results/captured.md: DIR=paritybench's checkout CAPTURED_ARGS="--only 'timm.*'"
	@venv=$$(scripts/venv_models.sh) && GODYNAMO_PARITYBENCH_DIR="$(DIR)" "$$venv/bin/python" bench/captured.py $(CAPTURED_ARGS)

warm: build ## run each model in two processes; the second one loads the translations of the first: WARM_ARGS="--only 'timm.*' --torch"
	@venv=$$(scripts/venv_models.sh) && "$$venv/bin/python" bench/models/warm.py $(WARM_ARGS)

aside: build ## print how long calls take while inductor compiles in another process: ARGS="--layers 24"
	@$(PY) -W ignore bench/aside.py $(ARGS)

first-calls: build ## print where the time of first calls goes: MODELS="transformers.bert torchvision.resnet18"
	@venv=$$(scripts/venv_models.sh) && "$$venv/bin/python" bench/first_calls.py $(or $(MODELS),transformers.bert torchvision.resnet18)

pgo: build ## profile first calls and rewrite cmd/godynamo-ext/default.pgo, from which go build optimizes the library
	@venv=$$(scripts/venv_models.sh) && "$$venv/bin/python" scripts/pgo.py

sizes: build ## measure sizes that change from call to call, beside torch.compile: SIZES_ARGS="--only mlp --engines godynamo,inline"
	@venv=$$(scripts/venv_models.sh) && "$$venv/bin/python" bench/sizes/sizes_run.py $(SIZES_ARGS)

ranks: build ## train on 2 and 4 processes over gloo beside eager and torch.compile: RANKS_ARGS="--only tensor --ranks 2"
	@venv=$$(scripts/venv_models.sh) && "$$venv/bin/python" bench/ranks/ranks_run.py $(RANKS_ARGS)

# Not in the environment of $(PYTHON): on a machine without network, python3 has what it needs.
gpu: ## check and measure on a GPU, without network or Go: GPU_PYTHON=python3 STEPS="build tests opinfo modules fuzz models speed"
	@$(or $(GPU_PYTHON),python3) scripts/gpu.py $(STEPS)

conformance: venv ## print pass, fail or no test for each row of docs/conformance.md: ROWS=S002 or ROWS=S002-07,S002-08
	@$(PY) scripts/conformance.py $(if $(ROWS),--rows $(ROWS)) $(CONFORMANCE_ARGS)

check: format lint generate ## run format, lint and generate, and require a clean diff
	@git diff --exit-code --stat || { echo "make check: the tree changed; commit what format and generate wrote"; exit 1; }

clean: ## remove all build results from the checkout
	rm -rf build python/godynamo/*.so *.egg-info python/*.egg-info
