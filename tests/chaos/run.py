"""A run: agents work through the proxy, are killed at random, and others take their places.

Everything random is drawn from the seed; which request meets which fault also depends on how the processes run.
"""

import contextlib
import multiprocessing
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.chaos import process
from tests.chaos.faults import Faults
from tests.chaos.operation_log import ACKNOWLEDGED, FAILED, Line, read_lines
from tests.chaos.process import Duty
from tests.chaos.proxy import Proxy, proxied
from tools.engine import Engine

AGENTS = ("one", "two", "three")
# One kill for about so many operations of all agents.
OPERATIONS_PER_KILL = 60
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

    def replace(self) -> None:
        """Kill the process and let another one go on, while what it sent may still be taking effect."""
        self.kill()
        self._duty = replace(self._duty, incarnation=self._duty.incarnation + 1)
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
            added = file.read().decode()
        self._read += len(added)
        self.ended += sum(added.count(f'"event": "{event}"') for event in (ACKNOWLEDGED, FAILED))
        assert alive, f"the agent ended by itself: {self._duty}\n{added}"

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
    proxy: Proxy = field(init=False)

    def run(self) -> None:
        """Let agents work until enough operations have ended; then kill them all."""
        rng = random.Random(f"{self.seed}/kills")
        with contextlib.ExitStack() as stack:
            url, self.proxy = stack.enter_context(proxied(self.engine.endpoint_url, Faults(str(self.seed))))
            environment = replace(self.engine, endpoint_url=url).environment()
            posts = []
            for agent in AGENTS:
                posts.append(
                    Post(Duty(agent, 1, self.table_name, self._log_path(agent), self.seed, environment))
                )
                stack.callback(posts[-1].kill)
            next_kill = seen = 0
            seen_at = time.monotonic()
            while (ended := self._ended(posts)) < self.operations:
                if ended != seen:
                    seen, seen_at = ended, time.monotonic()
                assert time.monotonic() - seen_at < STILL_SECONDS_MAX, "no operation ended any more"
                if ended >= next_kill:
                    if next_kill:
                        rng.choice(posts).replace()
                        self.kills += 1
                    next_kill = ended + rng.randint(1, 2 * OPERATIONS_PER_KILL)
                time.sleep(POLL_SECONDS)

    def operation_logs(self) -> Sequence[Path]:
        """Return the agents' operation logs."""
        return [self._log_path(agent) for agent in AGENTS]

    def lines(self, event: str) -> Sequence[Line]:
        """Return the lines of all operation logs that say that something happened."""
        return [line for path in self.operation_logs() for line in read_lines(path) if line["event"] == event]

    def _log_path(self, agent: str) -> Path:
        return self.folder / f"{agent}.jsonl"

    def _ended(self, posts: Sequence[Post]) -> int:
        for post in posts:
            post.look()
        return sum(post.ended for post in posts)
