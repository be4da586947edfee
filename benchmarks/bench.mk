# The benchmarks compare other savers, whose dependencies are no business of the project's own environments.

VENV_BENCH := .venv-bench

.PHONY: bench-cost bench-constraints
constraints: bench-constraints

$(VENV_BENCH)/.installed: pyproject.toml benchmarks/requirements.in constraints/bench.txt $(VENV)/.installed
	test -x $(VENV_BENCH)/bin/python || $(PYTHON) -m venv $(VENV_BENCH)
	$(BIN)/uv pip install --quiet --python $(VENV_BENCH)/bin/python --constraint constraints/bench.txt \
		--build-constraint constraints/aioboto3.txt --editable . --requirements benchmarks/requirements.in
	touch $@

# `make bench-cost JSON=cost.json` also writes what was measured to a file.
bench-cost: $(VENV_BENCH)/.installed engine
	$(VENV_BENCH)/bin/python -m benchmarks.cost $(if $(JSON),--json $(JSON))

bench-constraints: $(VENV)/.installed
	$(COMPILE) benchmarks/requirements.in --output-file constraints/bench.txt
