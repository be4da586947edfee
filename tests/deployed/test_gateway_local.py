"""`make gateway`, and an agent that uses it from a process that knows nothing of AWS."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.infra.rendering import INFRA
from tests.support.programs import ran

ROOT = INFRA.parent
# Of this machine's engine, as a newcomer has it.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "LANGGRAPH_", "MAKE"))
}
Act = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def gateway() -> Iterator[str]:
    """Give the address of what `make gateway` runs; it ends as every program of `tools.engine` does."""
    with subprocess.Popen(
        ["make", "gateway"],  # noqa: S607  # From the search path, as a person starts it.
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = next(filter(None, map(re.compile(r"serving table .+ at (\S+)$").match, process.stdout)))
            # It writes its log there, and would wait where nobody takes it.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield found[1]
        finally:
            process.terminate()


@pytest.fixture
def act(gateway: str) -> Act:
    """Give a function that runs the example for one action, to its end."""

    def run(action: str, thread_id: str) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "examples.remote_agent", gateway, action, thread_id)
        return ran(*command, cwd=ROOT, env=ENVIRONMENT)

    return run


@pytest.mark.search
def test_an_agent_without_aws_runs_is_interrupted_and_forked(act: Act) -> None:
    assert act("start", "trip").stdout.splitlines() == [
        "search begins",
        "compare begins",
        "asks: Book it?",
        "done: search, compare",
    ]
    assert act("yes", "trip").stdout.splitlines() == ["book begins", "done: search, compare, book"]
    assert act("fork", "trip").stdout.splitlines() == [
        "compare begins",
        "asks: Book it?",
        "done: search, compare",
    ]
    assert act("no", "trip").stdout.splitlines() == ["done: search, compare, nothing booked"]
