# What a newcomer needs is `make demo`, and `make test lint types` before a push; `make check` is what CI runs.
# Written for GNU make 3.81, which macOS still ships.

PYTHON ?= python3
VENV := .venv
VENV_AIOBOTOCORE := .venv-aiobotocore
EXAMPLE_PACKAGES := examples/javascript/node_modules
# What `make test-all` needs beside what `make setup` makes. `tools.matrix` makes one more.
ENVIRONMENTS := $(addsuffix /.installed,$(VENV_AIOBOTOCORE) $(EXAMPLE_PACKAGES))
BIN := $(VENV)/bin
PIN := $(BIN)/uv pip compile pyproject.toml --quiet --no-annotate --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make constraints"
COMPILE := $(PIN) --python-version 3.10 --universal --upgrade

# Failures of a property test have to be the same on every machine; `HYPOTHESIS_PROFILE=dev` explores.
HYPOTHESIS_PROFILE ?= ci
export HYPOTHESIS_PROFILE

# Containers often forbid it, and then each of the hundreds of processes that the tests start compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
# How many tests run at a time, each worker on engines of its own; 0 runs them one after the other in one process.
# One more than there are cores, since many tests wait for a process or a time-out.
CORES := $(shell getconf _NPROCESSORS_ONLN)
WORKERS ?= $(shell expr $(CORES) + 1)
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 8 --dist worksteal
# The packages above the saver, whose tests have to reach every branch where all servers are there, as in `make test-all`.
# They run by themselves, since measuring takes time, and without their searches. pyproject.toml names what is measured.
PACKAGES := $(foreach package,config cli gateway http migrate observe tenants view,$(patsubst %/,%,$(wildcard tests/$(package)/ tests/test_$(package).py)))
MEASURED := $(PACKAGES) -m "measured and not search" --cov --cov-report term-missing:skip-covered
# All others, by the markers of pyproject.toml: a share of a search is part of what the search beside it tries.
OTHERS := -m "search or not (measured or share)"

.PHONY: release-check help setup engine demo view-demo test test-all test-aiobotocore test-ends matrix soak fuzz-gateway langgraph-suite model mutants lint format types docs docs-serve check check-static constraints clean
# The targets share two virtual environments and the engines' ports, but for those that `check-static` runs.
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif

help:
	@echo "make demo         run an agent on an engine on this machine; no AWS account needed"
	@echo "make view-demo    the same, and then its thread on a page in the browser"
	@echo "make gateway      run the gateway for agents without AWS access, on an engine on this machine"
	@echo "make test         run the tests on DynamoDB Local (needs Java 17+), or else on moto's server"
	@echo "make test-all     run them on both, and the long searches, as CI does"
	@echo "make matrix       run the tests on each Python of this machine, and with the oldest dependencies"
	@echo "make soak         search for flaws with new seeds, for as long as you let it"
	@echo "make fuzz-gateway send the gateway 100,000 requests that are wrong, from a new seed"
	@echo "make langgraph-suite  LangGraph's own tests on the table, or with THROUGH=gateway"
	@echo "make model        ten minutes of interleavings of a few calls, on two cores"
	@echo "make mutants      half an hour of changing the code, to see whether a test notices"
	@echo "make check        what CI runs: lint, types, templates and all tests"
	@echo "make bench        units beside the other savers; holds bounds, writes the documents' tables"
	@echo "make bench-backends  times beside Postgres, SQLite and memory; writes the documents' tables"
	@echo "make docs         build the documents as a site, into build/site; make docs-serve shows it"
	@echo "make format       write what is generated, such as async methods, and let ruff put the code in order"
	@echo "make constraints  pin the newest releases of all dependencies anew"
	@echo "make clean        remove everything that make installed"

-include infra/infra.mk
-include benchmarks/bench.mk

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints/aioboto3.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=python3.12 ...")'
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints/aioboto3.txt uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints/aioboto3.txt \
		--build-constraint constraints/aioboto3.txt --editable '.[aioboto3,gateway-lambda,http,otel,vectors,view]' --group setup --group test --group pages --group hosts --group agents --group tracing --group docs --group lint
	touch $@

# The same saver with the newest aiobotocore, which aioboto3 does not allow, and the servers that tests start. With a
# Python older than 3.11 LangGraph's Agent Server is not among them, and its tests are skipped.
$(VENV_AIOBOTOCORE)/.installed: pyproject.toml constraints/aiobotocore.txt $(VENV)/.installed
	test -x $(VENV_AIOBOTOCORE)/bin/python || $(PYTHON) -m venv $(VENV_AIOBOTOCORE)
	$(BIN)/uv pip install --quiet --python $(VENV_AIOBOTOCORE)/bin/python \
		--constraint constraints/aiobotocore.txt --build-constraint constraints/aioboto3.txt \
		--editable '.[aiobotocore]' --group test --group second
	touch $@

# LangGraph.js and its tests of checkpointers, for the example.
$(EXAMPLE_PACKAGES)/.installed: examples/javascript/package.json
	if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --prefix $(<D); \
	else mkdir -p $(@D) && echo "Going on without LangGraph.js, which needs npm."; fi
	touch $@

# Without DynamoDB Local everything still runs, on moto's server; what is missing is said, not fatal.
engine: $(VENV)/.installed
	@$(BIN)/python -m tools.engine install || echo "Going on without DynamoDB Local, on moto's server."

demo: engine
	$(BIN)/python -m examples.demo

view-demo: engine
	$(BIN)/python -m examples.demo --view

test: export HYPOTHESIS_PROFILE := quick
test: engine
	$(PYTEST) -m "not (search or repeated)"

# The other environments come first, so that the last line printed is that of the whole suite.
test-all: setup engine $(ENVIRONMENTS) test-aiobotocore test-ends
	$(PYTEST) $(MEASURED)
	$(PYTEST) $(OTHERS)

# Encryption and expiry do not depend on the client library, so they are left out here, and so is the second opinion.
test-aiobotocore: $(VENV_AIOBOTOCORE)/.installed engine
	$(VENV_AIOBOTOCORE)/bin/python -m pytest --numprocesses $(WORKERS) --maxprocesses 4 -k "(environment or conformance or event_loops) and not (moto or options)" \
		tests/dependencies tests/saver/test_conformance.py tests/runtime/test_event_loops.py

# The oldest Python with the oldest dependencies, and the newest Python with the newest boto3.
test-ends: setup engine
	$(BIN)/python -m tools.matrix --ends

matrix: setup engine
	$(BIN)/python -m tools.matrix

NEW_SEED = $(BIN)/python -c 'import secrets; print(secrets.randbelow(1 << 32))'
# Goes on with new seeds until something fails or it is interrupted; what is printed runs a failure again.
soak: setup engine
	while LANGGRAPH_DYNAMODB_SEED=$$($(NEW_SEED)) \
		LANGGRAPH_DYNAMODB_SCHEDULES=5000 LANGGRAPH_DYNAMODB_SWITCHES=2 LANGGRAPH_DYNAMODB_CHAOS_OPERATIONS=3000 \
		LANGGRAPH_DYNAMODB_FUZZ_EXAMPLES=500 HYPOTHESIS_PROFILE=dev \
		$(BIN)/python -m pytest -m "not share" tests/simulation tests/chaos tests/load tests/fuzz tests/saver/test_differential.py tests/saver/test_one_life.py \
		tests/gateway/through/test_simulation.py; do :; done

# Adds packages to the environment for one command.
WITH := $(BIN)/uv run --quiet --no-project --python $(BIN)/python --with

fuzz-gateway: setup engine
	LANGGRAPH_DYNAMODB_SEED=$$($(NEW_SEED)) LANGGRAPH_DYNAMODB_GATEWAY_CASES=100000 HYPOTHESIS_PROFILE=dev $(BIN)/python -m pytest tests/gateway/test_fuzz.py

# LangGraph's own tests of graphs on this saver: on the table, or THROUGH=gateway.
THROUGH ?= table
langgraph-suite: setup engine
	$(BIN)/python -m tools.engine run $(WITH) pytest-mock --with pytest-repeat --with redis --with syrupy \
		python -m tools.langgraph_suite $(THROUGH) --numprocesses $(WORKERS) tests

model: setup
	LANGGRAPH_DYNAMODB_STATES=50000 $(BIN)/python -m pytest --numprocesses 2 -m search -k first_interleavings tests/model

# Changes one place of the code after the other, and prints how many changes the tests near them notice, by package.
# PIECE is the last digit of a change's number, so it stands for a tenth of MUTATED: by default half an hour on two busy
# cores. MUTATED=store.dynamodb is the store, checkpoint.dynamodb._operations.copy one module, and ._operations.[a-d]*
# some; all of them take more than an hour there. mutmut's `show` prints a change. The figures are those of all pieces
# that ran since `make clean`.
MUTATED ?= checkpoint.dynamodb._format checkpoint.dynamodb.protocol
PIECE ?= 7
mutants: setup
	HYPOTHESIS_PROFILE=ci nice $(WITH) mutmut==3.8.1 mutmut run --max-children 2 \
		$(foreach name,$(MUTATED),"langgraph.$(name).*__mutmut_*$(PIECE)")
	$(BIN)/python -m tools.mutants

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/python -m tools.prose
	$(BIN)/python -m tools.async_halves --check
	$(BIN)/python -m tools.options --check
	$(BIN)/python -m tools.page_tables --check
	$(BIN)/zizmor --quiet --offline .github/workflows

format: $(VENV)/.installed
	$(BIN)/python -m tools.async_halves
	$(BIN)/python -m tools.options
	$(BIN)/python -m tools.page_tables
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.installed
	$(BIN)/mypy
	$(BIN)/python -m tools.documented_code

# Broken links, anchors and references end it. The variable silences a notice about successors of mkdocs-material.
docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

docs-serve: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --strict --dev-addr 127.0.0.1:8001

check: check-static test-all

# Each of these takes one core, or waits for what it downloads, so they run side by side. The longest comes first. The
# site is built by the tests that look at it.
STATIC := types lint $(if $(wildcard infra/infra.mk),infra-lint infra-types)
check-static: setup
	$(MAKE) --no-print-directory --jobs $(CORES) SIDE_BY_SIDE=1 $(STATIC) $(ENVIRONMENTS)

constraints: $(VENV)/.installed
	$(COMPILE) --extra aioboto3 --extra gateway-lambda --extra http --extra otel --extra vectors --extra view --group setup --group test --group pages --group hosts --group agents --group tracing --group docs --group lint --output-file constraints/aioboto3.txt
	printf "hatchling\nhatch-fancy-pypi-readme\n" | $(PIN) - infra/examples/requirements.txt \
		--extra aioboto3 --extra gateway --extra vectors --constraint constraints/aioboto3.txt \
		--python-version 3.13 --python-platform linux --generate-hashes --output-file constraints/images.txt
	$(COMPILE) --extra aiobotocore --group test --group second --output-file constraints/aiobotocore.txt
	$(COMPILE) --group test --output-file constraints/boto3.txt

# What the release workflow runs before it publishes; tools/release.py says what it tries.
release-check: setup
	$(BIN)/python -m tools.release "$(TAG)"

clean:
	rm -rf .venv .venv-* $(EXAMPLE_PACKAGES) .engines mutants .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
