# The benchmarks compare other savers, whose dependencies are no business of the project's own environments.

VENV_BENCH := .venv-bench
SUITE := $(VENV_BENCH)/bin/python -m benchmarks.suite --write

.PHONY: bench bench-backends bench-constraints
constraints: bench-constraints

$(VENV_BENCH)/.installed: pyproject.toml benchmarks/requirements.in constraints/bench.txt $(VENV)/.installed
	test -x $(VENV_BENCH)/bin/python || $(PYTHON) -m venv $(VENV_BENCH)
	$(BIN)/uv pip install --quiet --python $(VENV_BENCH)/bin/python --constraint constraints/bench.txt \
		--build-constraint constraints/aioboto3.txt --editable '.[gateway,http]' --requirements benchmarks/requirements.in
	touch $@

# Units, requests and ratios, which other programs on the machine do not change.
bench: $(VENV_BENCH)/.installed engine
	$(SUITE) cost growth edits upkeep memories gateway cpu

# Times, beside Postgres, SQLite and memory: on an idle machine.
bench-backends: $(VENV_BENCH)/.installed engine
	$(SUITE) backends overhead

bench-constraints: $(VENV)/.installed
	$(COMPILE) benchmarks/requirements.in --extra gateway --extra http --output-file constraints/bench.txt
