"""`make gateway`, and an agent that uses it from a process that knows nothing of AWS."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.infra.rendering import INFRA

ROOT = INFRA.parent
# Of this machine's engine, as a newcomer has it.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "LANGGRAPH_", "MAKE"))
}
Act = Callable[..., "subprocess.CompletedProcess[str]"]


class Gateway:
    """What `make gateway` runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Wait until it says where engine and gateway answer."""
        self.process = process
        assert process.stdout is not None
        found = filter(None, map(re.compile(r".+ at (http://127\.0\.0\.1:\d+)$").match, process.stdout))
        # The engine, the table in it, and the gateway.
        self.addresses = [next(found)[1] for _ in range(3)]

    def ended(self) -> bool:
        """Whether nothing of it is left, once the process has ended."""
        self.process.wait(timeout=60)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, 0)
            return False
        return not any(map(_answers, self.addresses))


def _answers(address: str) -> bool:
    host, port = address.removeprefix("http://").split(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=5):
        return True
    return False


@contextlib.contextmanager
def started() -> Iterator[Gateway]:
    """Run `make gateway` as the leader of a group of processes, which a terminal makes of it."""
    with subprocess.Popen(
        ["make", "gateway"],  # noqa: S607  # From the search path, as a person starts it.
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield Gateway(process)
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    """Give a gateway for all of these tests but those that end it."""
    with started() as running:
        yield running


@pytest.fixture
def act(gateway: Gateway) -> Act:
    """Give a function that runs the example for one action, to its end."""

    def run(action: str, thread_id: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "examples.remote_agent", gateway.addresses[-1], action, thread_id]
        return subprocess.run(  # noqa: S603  # Our own example.
            command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=True
        )

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


@pytest.mark.search
def test_an_agent_that_is_killed_goes_on_after_its_last_step(gateway: Gateway, act: Act) -> None:
    command = [sys.executable, "-m", "examples.remote_agent", gateway.addresses[-1], "start", "killed"]
    with subprocess.Popen(  # noqa: S603  # Our own example.
        command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        said = [agent.stdout.readline(), agent.stdout.readline()]
        agent.kill()
    assert said == ["search begins\n", "compare begins\n"]
    resumed = act("resume", "killed").stdout.splitlines()
    assert resumed == ["compare begins", "asks: Book it?", "done: search, compare"]


@pytest.mark.search
@pytest.mark.parametrize("ending", ["Ctrl-C", "SIGTERM"])
def test_it_ends_with_its_engine_and_without_a_traceback(ending: str) -> None:
    with started() as running:
        if ending == "Ctrl-C":
            # As a terminal sends it: to everybody.
            os.killpg(running.process.pid, signal.SIGINT)
        else:
            running.process.terminate()
        assert running.process.stdout is not None
        rest = running.process.stdout.read()
        assert running.ended()
    assert "Traceback" not in rest
