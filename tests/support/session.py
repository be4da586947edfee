"""One conversation with a graph, by its blocking or its async methods, and what can be observed of it.

What is observed is text in which ids, times and versions are numbered in order of appearance: the same
conversation on two savers must give the same text.
"""

from __future__ import annotations

import difflib
import itertools
import pprint
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Durability, StateSnapshot

from tests.support.graphs import Build, Saver
from tests.support.operations import Side

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")
_SAVER = re.compile(r"<langgraph\.checkpoint\.[^>]*>")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00")


def canonical(value: Any) -> str:
    """Write a value as text that does not depend on when and where it was made."""
    numbers = itertools.count()
    names: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        if match[0] not in names:
            names[match[0]] = f"<{next(numbers)}>"
        return names[match[0]]

    text = _SAVER.sub("<saver>", pprint.pformat(value, width=200))
    return _TIME.sub("<time>", _ID.sub(name, text))


def described(found: CheckpointTuple) -> dict[str, Any]:
    """All of a stored checkpoint; of its versions only the counter, which savers dress up differently."""

    def counts(versions: dict[str, Any]) -> dict[str, int]:
        return {channel: int(str(version).split(".")[0]) for channel, version in versions.items()}

    checkpoint = found.checkpoint
    return {
        **found._asdict(),
        "checkpoint": {
            **checkpoint,
            "channel_versions": counts(checkpoint["channel_versions"]),
            "versions_seen": {node: counts(seen) for node, seen in checkpoint["versions_seen"].items()},
        },
    }


class Session:
    """A thread of a graph, driven from one side; `reopen` goes on in a new saver, as another process would."""

    def __init__(
        self, build: Build, open_saver: Callable[[], Saver], side: Side, durability: Durability = "async"
    ) -> None:
        """Start the conversation."""
        self.config: RunnableConfig = {"configurable": {"thread_id": "thread"}}
        self.seen: list[str] = []
        self._build = build
        self._open_saver = open_saver
        self._side = side
        self._durability = durability
        self.reopen()

    def reopen(self) -> None:
        """Go on in a new saver, which knows only what is stored."""
        self.saver = self._open_saver()
        self.graph = self._build(self.saver)

    async def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the graph, or its async one."""
        if self._side == "sync":
            return getattr(self.graph, method)(*arguments, **options)
        return await getattr(self.graph, f"a{method}")(*arguments, **options)

    async def invoke(self, inputs: Any, config: RunnableConfig | None = None) -> Any:
        """Run the graph."""
        return await self._call("invoke", inputs, config or self.config, durability=self._durability)

    async def update(self, config: RunnableConfig, values: Any, as_node: str | None = None) -> RunnableConfig:
        """Change the state by hand, which forks when the config names an older checkpoint."""
        updated: RunnableConfig = await self._call("update_state", config, values, as_node=as_node)
        return updated

    async def state(self, config: RunnableConfig | None = None) -> StateSnapshot:
        """Read the state, with that of subgraphs."""
        found: StateSnapshot = await self._call("get_state", config or self.config, subgraphs=True)
        return found

    async def _all(self, owner: Any, method: str, config: RunnableConfig) -> list[Any]:
        """Call a method of the graph or of the saver that lists, or its async one, and read all."""
        if self._side == "sync":
            return list(getattr(owner, method)(config))
        return [each async for each in getattr(owner, f"a{method}")(config)]

    async def history(self) -> list[StateSnapshot]:
        """Read the history, newest first."""
        return await self._all(self.graph, "get_state_history", self.config)

    async def stored(self) -> list[CheckpointTuple]:
        """Read every checkpoint of every namespace, by id."""
        found = await self._all(self.saver, "list", {"configurable": {"thread_id": "thread"}})
        # InMemorySaver lists one namespace after the other.
        return sorted(found, key=lambda each: each.checkpoint["id"])

    async def look(self) -> None:
        """Note the state, the history, and all that is stored."""
        state, history = await self.state(), await self.history()
        stored = [described(each) for each in await self.stored()]
        self.seen.append(canonical((stored, state, history)))


Scenario: TypeAlias = Callable[[Session], Awaitable[None]]


async def assert_same(
    open_saver: Callable[[], Saver],
    build: Build,
    scenario: Scenario,
    side: Side,
    durability: Durability = "async",
) -> Session:
    """Play a scenario on InMemorySaver and on ours, and compare all that was seen; return the session on ours."""
    memory = InMemorySaver()
    expected = Session(build, lambda: memory, side, durability)
    await scenario(expected)
    actual = Session(build, open_saver, side, durability)
    await scenario(actual)
    assert expected.seen, "the scenario looked at nothing"
    before, after = ("\n".join(session.seen).splitlines() for session in (expected, actual))
    changed = list(difflib.unified_diff(before, after, "expected", "actual", lineterm=""))
    assert not changed, "\n".join(changed)
    return actual
