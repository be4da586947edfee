# The benchmarks compare other savers, whose dependencies are no business of the project's own environments.

VENV_BENCH := .venv-bench
SUITE := $(VENV_BENCH)/bin/python -m benchmarks.suite

.PHONY: bench bench-cost bench-backends bench-constraints
constraints: bench-constraints

$(VENV_BENCH)/.installed: pyproject.toml benchmarks/requirements.in constraints/bench.txt $(VENV)/.installed
	test -x $(VENV_BENCH)/bin/python || $(PYTHON) -m venv $(VENV_BENCH)
	$(BIN)/uv pip install --quiet --python $(VENV_BENCH)/bin/python --constraint constraints/bench.txt \
		--build-constraint constraints/aioboto3.txt --editable '.[gateway,http]' --requirements benchmarks/requirements.in
	touch $@

# `make bench JSON=bench.json` also writes what was measured to a file.
bench: $(VENV_BENCH)/.installed engine
	$(SUITE) --charts docs/figures $(if $(JSON),--json $(JSON))

bench-cost: $(VENV_BENCH)/.installed engine
	$(SUITE) --only cost $(if $(JSON),--json $(JSON))

# Beside Postgres, SQLite and memory; the tables go into docs/choosing.md and docs/cost.md.
bench-backends: $(VENV_BENCH)/.installed engine
	$(VENV_BENCH)/bin/python -m benchmarks.backends --write $(if $(JSON),--json $(JSON))

bench-constraints: $(VENV)/.installed
	$(COMPILE) benchmarks/requirements.in --extra gateway --extra http --output-file constraints/bench.txt
	$(COMPILE) benchmarks/requirements-amazon.in --output-file constraints/bench-amazon.txt
