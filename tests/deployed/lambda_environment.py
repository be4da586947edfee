"""An execution environment of Lambda: one process that runs a handler, for one event at a time."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping

from tests.deployed import lambda_runtime
from tests.infra.rendering import Node


class Environment:
    """A process that runs `lambda_runtime`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Take over the process."""
        self._process = process

    @classmethod
    @contextlib.contextmanager
    def running(cls, handler: str, variables: Mapping[str, str], *modules: str) -> Iterator[Environment]:
        """Run a handler for the duration of the context, after these modules were imported."""
        with subprocess.Popen(  # noqa: S603  # Our own program, in the interpreter of the tests.
            [sys.executable, lambda_runtime.__file__, handler, *modules],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield cls(process)
            finally:
                process.kill()

    def send(self, event: Node) -> None:
        """Begin an invocation."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(event) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Node:
        """Wait for the invocation to end; the answer is its result or its error, and None if the process ended too."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline() or "null")

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the process for the duration of the context, as Lambda does between two invocations."""
        self._process.send_signal(signal.SIGSTOP)
        yield
        self._process.send_signal(signal.SIGCONT)
