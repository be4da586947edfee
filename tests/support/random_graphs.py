"""Random programs: a graph, and what happens to its threads, on InMemorySaver and on a table whose time passes.

A program talks, answers, travels back, rests, prunes, copies, moves and erases, in processes that come and go, and
whose clocks differ. InMemorySaver goes first. What its nodes are given, and what they do, is played again on ours. So a
node that is given something else, or that runs once more, is found at once.
"""

from __future__ import annotations

import difflib
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, StateSnapshot, interrupt
from typing_extensions import TypedDict

from langgraph.checkpoint.dynamodb import ThreadBusyError
from langgraph.checkpoint.dynamodb._format.items import is_expired
from langgraph.checkpoint.dynamodb.migrate import SaverEndpoint, Status, endpoint_of, migrate
from tests.simulation.schedule import Choices
from tests.support.graphs import Graph, Node
from tests.support.moving_clock import DeadError, Engine
from tests.support.observable import canonical
from tests.support.reference import ReferenceSaver

TTL_SECONDS = 3600
# How far clocks differ, and how many ttls a thread lives for sure, ends for sure, and a checkpoint is kept for sure.
SKEW_SECONDS = 15
_SKEW = 2 * SKEW_SECONDS / TTL_SECONDS
ALIVE, DEAD, KEPT = 0.9 - _SKEW, 1 + _SKEW, 1.05 - _SKEW
# In ttls, for how long a node works, and for how long nobody uses anything.
NAPS = (0.0, 0.0, 0.0, 0.0, 0.05, 0.3, 0.6, 0.84, 1.2)
RESTS = (0.02, 0.12, 0.3, 0.5, 0.7, *(0.84,) * 7)
LONG_RESTS = (1.3, 2.4, 3.3, 11.0, 200.0)
# A node that goes on from its thread's dead state does so while that is stored.
NAP_MAX = 1.9
# What died is in nobody's way after this time.
CLAIM = 0.05
THREADS = ("t", "u")
OWNER = "ada"
ACTIONS = 16
DEPTH = 2


class FlakyError(Exception):
    """A node failed, and may be run again."""


# The graphs


@dataclass(frozen=True)
class Part:
    """A node: one that works, or asks, or a graph of layers."""

    name: str
    questions: int = 0
    is_alone: bool = True
    """Whether no task is beside it, so that it may fail, or sleep for longer than the ttl, without a race."""
    is_stateful: bool | None = None
    layers: Sequence[tuple[str, Sequence[Part]]] = ()
    """`all` parts of a layer run, `one` of them, or `some`, each for a `Send` or two of its own."""
    loops: bool = False


def random_part(
    choices: Choices, name: str, depth: int = 0, *, is_alone: bool = True, within_stateful: bool = False
) -> Part:
    """Make a part."""
    is_graph = depth == 0 or (depth <= DEPTH and choices.pick(2) == 1)
    if not is_graph:
        questions = (0, 0, 1, 2)[choices.pick(4)]
        return Part(name, questions, is_alone)
    # A call in a stateful graph goes with the root checkpoint that it started from, though that graph may wait for it.
    is_stateful = True if depth and (within_stateful or choices.pick(3)) else None
    layers = []
    for position in range(1 + choices.pick(3 if depth == 0 else 2)):
        kind = ("all", "all", "one", "some")[choices.pick(4)]
        names = [f"{name}{position}{each}" for each in "abc"[: 1 + choices.pick(3)]]
        alone = is_alone and (kind == "one" or (kind == "all" and len(names) == 1))
        layers.append(
            (
                kind,
                [
                    random_part(choices, each, depth + 1, is_alone=alone, within_stateful=bool(is_stateful))
                    for each in names
                ],
            )
        )
    return Part(name, is_stateful=is_stateful, layers=layers, loops=choices.pick(4) == 0)


def _union(state: list[str], more: list[str]) -> list[str]:
    return [*state, *(each for each in dict.fromkeys(more) if each not in state)]


def _union_all(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    return _union(state, [each for more in writes for each in more])


def _later(_: str, more: str) -> str:
    return more


def _digest(state: Any) -> int:
    return zlib.crc32(repr(sorted(state.items())).encode())


def _schema(name: str, *, delta: bool) -> Any:
    """Return the state of a graph: what all share, and what it keeps for itself."""
    make: Any = TypedDict
    log: Any = DeltaChannel(_union_all, snapshot_frequency=3) if delta else _union
    return make(
        f"State_{name}",
        {
            "ask": Annotated[str, _later],
            "log": Annotated[list[str], log],
            "big": Annotated[str, _later],
            f"facts_{name}": Annotated[list[str], _union],
            f"rounds_{name}": int,
        },
        total=False,
    )


def _graph(side: Side, part: Part, *, delta: bool) -> StateGraph[Any, Any, Any, Any]:
    """Build a graph: its layers one after the other, each behind a node that chooses of its parts."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(_schema(part.name, delta=delta))
    before: list[str] = []
    for position, (kind, parts) in enumerate(part.layers):
        choice, names = f"{part.name}{position}", [each.name for each in parts]
        graph.add_node(choice, lambda _: {})
        for name in before:
            graph.add_edge(name, choice)
        for each in parts:
            node: Node = _leaf(side, each, part.name)
            if each.layers:
                node = _graph(side, each, delta=delta).compile(checkpointer=each.is_stateful)
            graph.add_node(each.name, node)
        graph.add_conditional_edges(choice, partial(_chosen, kind, names), names)
        before = names
    graph.add_edge(START, f"{part.name}0")
    rounds = f"rounds_{part.name}"
    graph.add_node("end", _counts(rounds))
    for name in before:
        graph.add_edge(name, "end")
    if part.loops:
        graph.add_conditional_edges(
            "end", lambda state: f"{part.name}0" if state[rounds] % 2 else END, [f"{part.name}0", END]
        )
    return graph


def _counts(rounds: str) -> Node:
    return lambda state: {rounds: state.get(rounds, 0) + 1}


def _chosen(kind: str, names: Sequence[str], state: Any) -> Any:
    digest = _digest(state)
    if kind == "all":
        return list(names)
    if kind == "one":
        return names[digest % len(names)]
    return [
        Send(names[(digest >> each) % len(names)], {"ask": f"{each} {digest}", "log": []})
        for each in range(1 + digest % 3)
    ]


def _leaf(side: Side, part: Part, within: str) -> Node:
    def node(state: Any) -> dict[str, Any]:
        seen = f"{_digest(state):08x}"
        if side.works(part, seen):
            raise FlakyError(part.name)
        answers = [interrupt(f"{part.name} {seen} {each}?") for each in range(part.questions)]
        text = f"{part.name} {seen} {answers}"
        big = random.Random(text).randbytes(200).hex() if int(seen, 16) % 3 else state.get("big", "")
        return {"log": [text], f"facts_{within}": [text], "big": big}

    return node


# The two sides


class Memory(ReferenceSaver):
    """InMemorySaver as a table with a ttl is to be: a thread that is not used is gone, and begins anew."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start empty."""
        super().__init__()
        self._clock = clock
        self.used_at: dict[str, float] = {}
        self.put_at: dict[str, float] = {}
        self.stored_at: dict[tuple[str, str], float] = {}
        """When each root checkpoint was stored."""
        self.lives_for_ever = False

    def is_dead(self, thread: str) -> bool:
        """Tell whether a thread has not been used for its ttl."""
        if self.lives_for_ever or thread not in self.used_at:
            return False
        return self._clock() - self.used_at[thread] > ALIVE * TTL_SECONDS

    def erase(self, thread: str) -> None:
        """Forget a thread."""
        self.delete_thread(thread)
        self.used_at.pop(thread, None)
        self.stored_at = {each: at for each, at in self.stored_at.items() if each[0] != thread}

    def renew(self, thread: str, stored_at: float, used_at: float) -> None:
        """Let all of a thread be as if it were stored at some time, and used at another."""
        self.used_at[thread] = used_at
        self.stored_at |= {(thread, each): stored_at for each in self.storage[thread][""]}

    def _use(self, config: RunnableConfig) -> None:
        place = config["configurable"]
        thread = place["thread_id"]
        root_id = place.get("checkpoint_id")
        if place["checkpoint_ns"]:
            root_id = place.get("checkpoint_map", {}).get("")
        if self.is_dead(thread) and root_id not in self.storage[thread][""]:
            self.erase(thread)
        self.used_at[thread] = self._clock()

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, and note when."""
        self._use(config)
        self.put_at[config["configurable"]["thread_id"]] = self._clock()
        if not config["configurable"]["checkpoint_ns"]:
            self.stored_at[config["configurable"]["thread_id"], checkpoint["id"]] = self._clock()
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store writes, which is a use of their thread."""
        self._use(config)
        super().put_writes(config, writes, task_id, task_path)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint, unless its thread is gone."""
        return None if self.is_dead(config["configurable"]["thread_id"]) else super().get_tuple(config)

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        """List checkpoints, unless their thread is gone."""
        if config is None or not self.is_dead(config["configurable"]["thread_id"]):
            yield from super().list(config, **options)


class Side:
    """One of the two savers, with the graph on it."""

    graph: Graph

    def __init__(self, works: Callable[[Part, str], bool]) -> None:
        """Take what a node does when it works; it returns whether the node fails."""
        self.works = works

    def history(self, thread: str) -> dict[Any, StateSnapshot]:
        """Return the checkpoints of a thread, the newest first, by what both sides call them."""
        found = {}
        for each in self.graph.get_state_history(_config(thread)):
            metadata: Any = each.metadata
            found[tuple(metadata.get(name) for name in ("action", "step", "source"))] = each
        return found


def _config(thread: str, **metadata: Any) -> RunnableConfig:
    return {
        "configurable": {"thread_id": thread, "user_id": OWNER},
        "metadata": metadata,
        "max_concurrency": 1,
        "recursion_limit": 100,
    }


def _told(state: StateSnapshot) -> Any:
    """Return all of a checkpoint but ids and times, and the link to a parent that may be gone."""
    metadata = {name: value for name, value in (state.metadata or {}).items() if name != "parents"}
    tasks = [
        (
            each.name,
            str(each.error),
            sorted(one.value for one in each.interrupts),
            each.result,
            _told(each.state) if isinstance(each.state, StateSnapshot) else None,
        )
        for each in state.tasks
    ]
    return state.values, state.next, metadata, tasks


def _outcome(call: Callable[[], Any]) -> Any:
    """Return what a call gave: of a run its values and questions, or its error."""
    try:
        found = call()
    except AssertionError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever InMemorySaver brings about is right.
        return f"{type(error).__name__}: {error}"
    if isinstance(found, dict):
        # Tasks side by side end in any order.
        return {**found, "__interrupt__": sorted(each.value for each in found.get("__interrupt__", ()))}
    return None


class Program:
    """One program."""

    def __init__(self, choices: Choices) -> None:
        """Choose a graph, and start with an empty table."""
        self.choices = choices
        self.log: list[str] = []
        self.engine = Engine()
        self.now = self.engine.now
        self.memory = Memory(lambda: self.now)
        self.expected, self.actual = Side(self._works), Side(self._works_again)
        self._tape: list[tuple[str, str, float, bool]] = []
        self._played = 0
        self._running: tuple[str, bool] | None = None
        self._travels = False
        self._began = self._used_at_first = self.now
        self._gone: dict[str, set[Any]] = {each: set() for each in THREADS}
        """The checkpoints that a prune has removed."""
        self._actions = 0
        part = random_part(choices, "n")
        delta = choices.pick(4) == 0
        self._delta = delta
        self._build = partial(_graph, part=part, delta=delta)
        self.expected.graph = self._build(self.expected).compile(checkpointer=self.memory)
        self._open()
        self.log.append(f"{part}, delta {delta}")

    def _open(self) -> None:
        """Begin a new process."""
        self.engine.requests_left = None
        self.saver = self.engine.saver(
            ttl_seconds=TTL_SECONDS,
            ahead_seconds=self.choices.pick(SKEW_SECONDS + 1),
            cache_bytes=(1 << 20, 1 << 20, 3000, 0)[self.choices.pick(4)],
            owner_from="user_id",
        )
        self.actual.graph = self._build(self.actual).compile(checkpointer=self.saver)

    # What nodes do

    def _works(self, part: Part, seen: str) -> bool:
        """Work for some time in InMemorySaver's run, and perhaps fail."""
        nap = NAPS[self.choices.pick(len(NAPS))]
        assert self._running is not None
        thread, is_sync = self._running
        until = self._moved(nap, besides=thread)
        # Only then is a checkpoint stored for sure before a node behind it works.
        used_at = self.memory.put_at.get(thread, self._began) if is_sync else self._used_at_first
        # A run that travels back has to store something within a ttl.
        is_early = self._travels and self.memory.put_at.get(thread, 0.0) <= self._began
        most = NAP_MAX if is_sync and part.is_alone and not is_early else ALIVE
        if until - used_at > most * TTL_SECONDS or until - self._began > NAP_MAX * TTL_SECONDS:
            until = self.now
        fails = part.is_alone and self.choices.pick(8) == 7
        self._tape.append((part.name, seen, until, fails))
        self.now = until
        return fails

    def _works_again(self, part: Part, seen: str) -> bool:
        """Do in our run what the other one did."""
        left = self._tape[self._played :]
        assert left, f"{part.name} runs once more, given {seen}"
        name, given, until, fails = left[0]
        assert (part.name, seen) == (name, given), f"{part.name} is given {seen}, not {name} {given}"
        self._played += 1
        self.engine.now = until
        return fails

    def _moved(self, ttls: float, besides: str | None = None) -> float:
        """Return a time in which every thread is surely alive, or surely dead."""
        until = self.now + ttls * TTL_SECONDS
        for _ in THREADS:
            for thread, used_at in self.memory.used_at.items():
                if thread != besides and ALIVE <= (until - used_at) / TTL_SECONDS <= DEAD:
                    until = used_at + DEAD * TTL_SECONDS + 1
        return until

    def _rest(self, ttls: float) -> None:
        self.now = self.engine.now = self._moved(ttls)

    # What is looked at

    def check(self, thread: str) -> None:
        """Compare all that is shown of a thread."""
        states = [
            _told(side.graph.get_state(_config(thread), subgraphs=True))
            for side in (self.expected, self.actual)
        ]
        _same(*states)
        expected, seen = (side.history(thread) for side in (self.expected, self.actual))
        assert not seen.keys() - expected.keys(), f"{thread} shows {seen.keys() - expected.keys()}"
        assert list(seen) == [each for each in expected if each in seen]
        assert not seen.keys() & self._gone[thread], f"{thread} shows what a prune has removed"
        for name in expected:
            is_kept = self._is_kept(thread, name) and name not in self._gone[thread]
            assert name in seen or not is_kept, f"{thread} lacks {name}"
        for name, each in seen.items():
            _same(_told(expected[name]), _told(each))
        if seen:
            name = list(seen)[self.choices.pick(len(seen))]
            _same(
                *(
                    _told(side.graph.get_state(found[name].config, subgraphs=True))
                    for side, found in ((self.expected, expected), (self.actual, seen))
                )
            )

    def _is_kept(self, thread: str, name: Any) -> bool:
        """Whether a checkpoint was stored so short a time ago that it has not expired."""
        checkpoint_id = self.expected.history(thread)[name].config["configurable"]["checkpoint_id"]
        return bool(self.now - self.memory.stored_at[thread, checkpoint_id] < KEPT * TTL_SECONDS)

    def _check_stored(self, thread: str) -> None:
        # What has expired goes by itself, and without its thread item nobody finds it.
        stored = [
            item
            for item in self.engine.model.items()
            if item["PK"]["S"].startswith(f"{thread}#") and not is_expired(item, self.now)
        ]
        assert not stored, f"of {thread}, which is erased, is stored: {stored}"

    # What happens

    def run(self) -> None:
        """Run the program."""
        actions: Sequence[Callable[[str], None]] = (
            *(self.talk,) * 4,
            *(self.answer,) * 4,
            *(self.travel,) * 3,
            self.go_on,
            self.change_subgraph,
            *(self.rest,) * 4,
            *(self.restart,) * 2,
            self.prune,
            self.copy,
            self.move,
            self.erase,
        )
        self.talk("t")
        for _ in range(ACTIONS):
            thread = THREADS[self.choices.pick(4) == 3]
            if thread not in self.memory.used_at:
                thread = "t"
            actions[self.choices.pick(len(actions))](thread)
            for each in THREADS:
                self.check(each)

    def _on_both(self, call: Callable[[Graph, RunnableConfig, int], Any], thread: str, what: str) -> None:
        """Do something with both graphs; the call is told which of the two it is for."""
        self._actions += 1
        config = _config(thread, action=self._actions)
        self._began = self.now
        self._used_at_first = self.memory.used_at.get(thread, self.now)
        self.log.append(f"{self._actions} at {self.now}: {thread} {what}")
        self._tape.clear()
        self._played = 0
        expected = _outcome(lambda: call(self.expected.graph, config, 0))
        seen = _outcome(lambda: call(self.actual.graph, config, 1))
        self.log.append(f"   {self._tape} gives {expected}")
        _same(expected, seen)
        assert self._played == len(self._tape), f"these do not run: {self._tape[self._played :]}"
        self.engine.now = self.now

    def _run(
        self, thread: str, what: str, given: Callable[[int], Any], at: Sequence[RunnableConfig] = ()
    ) -> None:
        """Run both graphs, from their newest checkpoints or from others."""
        durability: Any = ("sync", "sync", "async", "exit")[self.choices.pick(4)]
        if at and durability == "exit":
            # LangGraph then takes the states of subgraphs from before the parent of the checkpoint, which may be gone.
            durability = "sync"
        self._running = thread, durability == "sync"
        self._travels = bool(at)

        def call(graph: Graph, config: RunnableConfig, side: int) -> Any:
            if at:
                config = {**config, "configurable": {**config["configurable"], **at[side]["configurable"]}}
            return graph.invoke(given(side), config, durability=durability)

        self._on_both(call, thread, f"{what}, {durability}")

    def talk(self, thread: str) -> None:
        """Ask something."""
        ask = f"question {self._actions}"
        self._run(thread, ask, lambda _: {"ask": ask, "log": []})

    def answer(self, thread: str) -> None:
        """Answer some of what the thread asks."""
        states = [side.graph.get_state(_config(thread)) for side in (self.expected, self.actual)]
        self._answer(thread, states, [])

    def _answer(self, thread: str, states: Sequence[StateSnapshot], at: Sequence[RunnableConfig]) -> None:
        count = len(states[0].interrupts)
        if not count:
            return
        some = self.choices.subset(count) or list(range(count))

        def given(side: int) -> Any:
            asked = sorted(states[side].interrupts, key=lambda each: str(each.value))
            return Command(resume={asked[each].id: f"answer to {asked[each].value}" for each in some})

        self._run(thread, f"answers {some} of {count}", given, at)

    def go_on(self, thread: str) -> None:
        """Run what failed, or asked, once more."""
        if self.expected.graph.get_state(_config(thread)).next:
            self._run(thread, "goes on", lambda _: None)

    def _some_state(self, thread: str) -> list[StateSnapshot]:
        """Return one of the checkpoints that are shown, on both sides."""
        seen = self.actual.history(thread)
        if not seen:
            return []
        name = list(seen)[self.choices.pick(len(seen)) if self.choices.pick(3) else 0]
        self.log.append(f"   at {name}")
        return [self.expected.history(thread)[name], seen[name]]

    def travel(self, thread: str) -> None:
        """Go on from an older checkpoint: as it is, with an answer, with a question, or changed by hand."""
        states = self._some_state(thread)
        if not states:
            return
        at = [each.config for each in states]
        way = self.choices.pick(4)
        if way == 0:
            self._run(thread, "again", lambda _: None, at)
        elif way == 1:
            self._answer(thread, states, at)
        elif way == 2:
            self._run(thread, "asked again", lambda _: {"ask": f"another {self._actions}", "log": []}, at)
        else:
            forks = self._updated(thread, at)
            if len(forks) == len(at) and self.choices.pick(2):
                self._run(thread, "goes on with the change", lambda _: None, forks)

    def _updated(self, thread: str, at: Sequence[RunnableConfig]) -> list[RunnableConfig]:
        """Change the state by hand."""
        values, forks = {"log": [f"by hand {self._actions}"]}, list[RunnableConfig]()
        as_node = (START, None)[self.choices.pick(2)]

        def call(graph: Graph, config: RunnableConfig, side: int) -> Any:
            config = {**config, "configurable": {**config["configurable"], **at[side]["configurable"]}}
            forks.append(graph.update_state(config, values, as_node=as_node))

        self._on_both(call, thread, f"changed as {as_node}")
        return forks

    def change_subgraph(self, thread: str) -> None:
        """Change the state of a subgraph that waits."""
        inner = [
            [
                each.state.config
                for each in side.graph.get_state(_config(thread), subgraphs=True).tasks
                if isinstance(each.state, StateSnapshot)
            ]
            for side in (self.expected, self.actual)
        ]
        if inner[0]:
            position = self.choices.pick(len(inner[0]))
            self._updated(thread, [each[position] for each in inner])

    def rest(self, _: str) -> None:
        """Use nothing for some time; DynamoDB may remove some of what has expired."""
        rests = LONG_RESTS if self.choices.pick(6) == 5 else RESTS
        ttls = rests[self.choices.pick(len(rests))]
        if ttls > 50:
            # It is never late by a week.
            self._rest(20)
            self.engine.expire()
        self._rest(ttls)
        if self.choices.pick(2):
            expired = self.engine.model.expired()
            if self.choices.pick(2):
                expired = [expired[each] for each in self.choices.subset(len(expired))]
            self.engine.model.expire(expired)
        self.log.append(f"rests for {ttls}, until {self.now}")

    def restart(self, _: str) -> None:
        """Go on in a new process."""
        self._open()
        self.log.append("restarts")

    def _dies(self, call: Callable[[], Any], requests_max: int) -> bool:
        """Make a call, perhaps in a process that dies at one of its requests; tell whether it has died."""
        if self.choices.pick(3):
            self.engine.requests_left = self.choices.pick(requests_max)
        try:
            call()
        except DeadError:
            self._open()
            self._rest(CLAIM)
            self.log.append("   dies")
            return True
        self.engine.requests_left = None
        return False

    def prune(self, thread: str) -> None:
        """Keep the newest checkpoints."""
        kept, before = 1 + self.choices.pick(4), list(self.actual.history(thread))
        if not before:
            # One that dies may leave an item of nobody's, for an hour.
            return
        self.log.append(f"{thread} pruned to {kept}")
        prune = partial(self.saver.prune, [thread], strategy="keep_last", keep_last=kept)
        died = self._dies(prune, 40)
        if self.memory.is_dead(thread):
            return
        after = list(self.actual.history(thread))
        # Some may expire while one dies.
        stay = [each for each in before[:kept] if not died or self._is_kept(thread, each)]
        assert [each for each in after if each in stay] == stay, f"{before} pruned to {after}"
        # Ancestors that delta channels are rebuilt from stay.
        assert died or self._delta or len(after) == len(before[:kept]), f"{before} pruned to {after}"
        self._gone[thread] |= set(before) - set(after)

    def copy(self, thread: str) -> None:
        """Copy a thread to another id; a copy that died is not seen, and is repeated, or erased."""
        target = "u" if thread == "t" else "t"
        if not self.actual.history(thread):
            return
        if self.actual.history(target):
            self._erase_again(target)
        self.memory.erase(target)
        self._gone[target] = set()
        if self.memory.is_dead(thread):
            # Erasures that die take their time.
            return
        self.log.append(f"{thread} copied to {target}")
        while self._dies(lambda: self.saver.copy_thread(thread, target), 60):
            self.check(target)
            if self.choices.pick(2):
                self._refuses(target)
            way = self.choices.pick(4)
            if way == 0:
                self._erase_again(target)
                return
            if way == 1:
                self.rest(thread)
            if self.memory.is_dead(thread):
                self._erase_again(target)
                return
        self.memory.copy_thread(thread, target)
        self.memory.renew(target, self.now, self.now)
        self._gone[target] = self.expected.history(target).keys() - self.actual.history(target).keys()
        lost = self.actual.history(thread).keys() - self.actual.history(target).keys()
        assert not lost, f"the copy lacks {lost}"

    def _refuses(self, target: str) -> None:
        """Let a run find that its thread is a copy that is not complete, unless nothing says so yet."""
        if not any(
            item["PK"]["S"] == f"{target}#"
            and item["SK"]["S"] == "T"
            and item.get("alive_until") == {"N": "0"}
            for item in self.engine.model.items()
        ):
            return
        try:
            self._running, self._travels = (target, True), False
            self.actual.graph.update_state(_config(target), {"log": ["too early"]}, as_node=START)
        except ThreadBusyError:
            return
        msg = "something is stored in half a copy"
        raise AssertionError(msg)

    def move(self, thread: str) -> None:
        """Move a thread from InMemorySaver, which has all of it; a move that died is repeated, perhaps much later."""
        if self._delta or not self.expected.history(thread):
            # LangGraph gives a delta channel that is new in a fork a version of the saver's kind, not of the thread's.
            return
        self._erase_again(thread)
        self.log.append(f"{thread} moved")
        self.memory.lives_for_ever = True
        began = self.now

        def move() -> None:
            (report,) = migrate(SaverEndpoint(self.memory), endpoint_of(self.saver), [thread], parallel=1)
            assert report.status in (Status.MOVED, Status.COMPLETE), report

        while self._dies(move, 200):
            self.memory.used_at[thread] = self._used_at(thread)
            if self.choices.pick(3) == 0:
                self.rest(thread)
            if self.now - self.memory.used_at[thread] > ALIVE * TTL_SECONDS:
                # All of it is moved once more.
                began = self.now
        self.memory.lives_for_ever = False
        self.memory.renumber_writes(thread)
        self.memory.renew(thread, began, self._used_at(thread))
        self._gone[thread] = set()

    def _used_at(self, thread: str) -> float:
        """Return when a use of a thread was noted last on our side."""
        found = [
            float(item["alive_until"]["N"]) - TTL_SECONDS
            for item in self.engine.model.items()
            if item["PK"]["S"] == f"{thread}#" and "alive_until" in item
        ]
        return max(found, default=0.0)

    def erase(self, thread: str) -> None:
        """Erase a thread, or all of its owner, at any age; an erasure that died is repeated."""
        threads = (thread,) if self.choices.pick(2) else THREADS
        self._erase_again(*threads)
        for each in threads:
            self.memory.erase(each)

    def _erase_again(self, *threads: str) -> None:
        """Erase threads on our side, whatever has died before."""

        def erase() -> None:
            if len(threads) == 1:
                self.saver.delete_thread(threads[0])
            else:
                found = self.saver.delete_owner(OWNER)
                assert not found.failed, found

        self.log.append(f"{threads} erased")
        while self._dies(erase, 30):
            pass
        self.log.append("   done")
        for each in threads:
            self._check_stored(each)
            self._gone[each] = set()


def _same(expected: Any, seen: Any) -> None:
    before, after = (canonical(each).splitlines() for each in (expected, seen))
    assert before == after, "\n".join(difflib.unified_diff(before, after, "expected", "actual", lineterm=""))


def random_program(choices: Choices) -> None:
    """Run a program.

    Raises:
        AssertionError: It went another way than on InMemorySaver. The message says what it did.
    """
    program = Program(choices)
    try:
        program.run()
    except Exception as violation:
        raise AssertionError("\n".join([str(violation), *program.log])) from violation
