"""A run: agents work through the proxy, are killed at random, and others take their places.

Everything random is drawn from the seed; which request meets which fault also depends on how the processes run.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.chaos import process
from tests.chaos.operation_log import read_lines
from tests.chaos.process import Duty
from tools.engine import Engine

PROJECT_FOLDER = Path(__file__).parents[2]
KINDS = ("sync", "async", "graph")
# One kill for about so many operations of all agents.
OPERATIONS_PER_KILL = 60
# Half of the successors begin while what their predecessors sent may still be taking effect.
SETTLE_RATE = 0.5
POLL_SECONDS = 0.02
# An operation ends within the retries' minute; a machine that is busy gets some more.
STILL_SECONDS_MAX = 180.0

# What takes long is to import all that an agent needs: a server does that once, and each agent is forked from it.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([process.__name__])


class Post:
    """An agent's place: the process that holds it now, and the operation log of all that held it."""

    def __init__(self, first: Duty) -> None:
        """Let the first process take its place."""
        self.ended = 0
        """How many operations have ended."""
        self._duty = first
        self._read = 0
        self._start()

    def replace(self, *, settle: bool) -> None:
        """Kill the process and let another one go on."""
        self.kill()
        self._duty = replace(self._duty, incarnation=self._duty.incarnation + 1, settle=settle)
        self._start()

    def kill(self) -> None:
        """Kill the process, by SIGKILL."""
        self._process.kill()
        self._process.join()
        self._process.close()

    def look(self) -> None:
        """Count what was added to the operation log; the process may not have ended by itself."""
        alive = self._process.is_alive()
        with self._duty.operation_log.open("rb") as file:
            file.seek(self._read)
            added = file.read()
        self._read += len(added)
        self.ended += added.count(b'{"acknowledged": ') + added.count(b'{"failed": ')
        assert alive, f"the agent ended by itself: {self._duty}\n{added.decode()}"

    def _start(self) -> None:
        self._duty.operation_log.touch()
        self._process = _context.Process(target=process.serve, args=(self._duty,), daemon=True)
        self._process.start()


@dataclass
class ChaosRun:
    """What one run is to be, and what it was."""

    engine: Engine
    table_name: str
    seed: int
    operations: int
    folder: Path
    kills: int = 0
    report: dict[str, Any] = field(default_factory=dict)
    """What the proxy counted."""

    def run(self) -> None:
        """Let agents work until enough operations have ended; then kill them all."""
        rng = random.Random(f"{self.seed}/kills")
        with self._proxy() as proxied, contextlib.ExitStack() as stack:
            posts = []
            for kind in KINDS:
                posts.append(Post(self._first_duty(kind, proxied)))
                stack.callback(posts[-1].kill)
            next_kill = seen = 0
            seen_at = time.monotonic()
            while (ended := self._ended(posts)) < self.operations:
                if ended != seen:
                    seen, seen_at = ended, time.monotonic()
                assert time.monotonic() - seen_at < STILL_SECONDS_MAX, "no operation ended any more"
                if ended >= next_kill:
                    if next_kill:
                        rng.choice(posts).replace(settle=rng.random() < SETTLE_RATE)
                        self.kills += 1
                    next_kill = ended + rng.randint(1, 2 * OPERATIONS_PER_KILL)
                time.sleep(POLL_SECONDS)

    def operation_logs(self) -> Sequence[Path]:
        """Return the agents' operation logs."""
        return [self._log_path(kind) for kind in KINDS]

    def lines(self) -> Iterator[Any]:
        """Return the lines of all operation logs."""
        for path in self.operation_logs():
            yield from read_lines(path)

    def _log_path(self, kind: str) -> Path:
        return self.folder / f"{kind}.jsonl"

    def _first_duty(self, kind: str, proxied: Engine) -> Duty:
        return Duty(
            kind=kind,
            incarnation=1,
            table_name=self.table_name,
            operation_log=self._log_path(kind),
            seed=self.seed,
            settle=False,
            endpoint_url=proxied.endpoint_url,
            environment=proxied.environment(),
        )

    def _ended(self, posts: Sequence[Post]) -> int:
        for post in posts:
            post.look()
        return sum(post.ended for post in posts)

    @contextlib.contextmanager
    def _proxy(self) -> Iterator[Engine]:
        """Run the proxy, and keep its report once everything has taken effect."""
        command = [sys.executable, "-m", "tests.chaos.proxy", self.engine.endpoint_url, str(self.seed)]
        with subprocess.Popen(  # noqa: S603  # This interpreter, with a module of ours.
            command, cwd=PROJECT_FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as running:
            try:
                assert running.stdout is not None
                yield replace(self.engine, endpoint_url=running.stdout.readline().strip())
                self.report = json.loads(running.communicate()[0])
            finally:
                running.kill()
