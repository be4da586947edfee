"""Who takes part: a small thread, and calls that change or read it at the same time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Cache, Facts, Storage
from tests.model.states import MakeFlow, Tokens
from tests.simulation.history import Deletion, Put, Writes
from tests.simulation.world import text
from tests.support.dynamodb_values import Item
from tests.support.harness import CODEC, TABLE, THREAD, Harness, Process

Values = Mapping[str, Any]


def _put(checkpoint_id: str, values: Values, new: Sequence[str], parent: str | None, run_id: str) -> Put:
    return Put(
        thread=THREAD,
        checkpoint_id=checkpoint_id,
        parent_id=parent,
        values=values,
        versions=dict.fromkeys(new, 1),
        run_id=run_id,
    )


def _long(name: str) -> str:
    """Return a text that needs segments."""
    return "".join(text(name, number) for number in range(4))


# Each of the two texts needs segments. What only an older checkpoint names is what a prune removes.
_OLD: Values = {"kept": _long("kept") + _long("kept, too"), "turn": _long("old")}
_NEW: Values = {**_OLD, "turn": _long("new")}
FIRST = _put("1", _OLD, ("kept", "turn"), None, "old")
SECOND = _put("2", _NEW, ("turn",), "1", "run")
CHILD = _put("4", {**_NEW, "turn": _long("child")}, ("turn",), "2", "run")
FORK = _put("3", {**_OLD, "small": "fork"}, ("small",), "1", "fork")
WRITES = Writes(
    thread=THREAD,
    checkpoint_id="2",
    task_id="task",
    task_path="",
    # A task often writes what it was given. The segments of that are named again where they are more than half of it.
    writes=[("kept", _NEW["kept"]), ("a", text("written"))],
)


@dataclass(frozen=True)
class Call:
    """A call that takes part, and what the history is to know of it."""

    name: str
    begin: Callable[[Process], Op[Any]]
    record: Put | Writes | Deletion | None = None
    """`None` for one that reads the newest checkpoint."""
    remembers: Sequence[str] = ()
    """The checkpoints that its process has read before."""

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.record is None

    @property
    def deletes(self) -> bool:
        """Whether it is a deletion."""
        return isinstance(self.record, Deletion)


def put_call(name: str, put: Put, *, warm: bool = True) -> Call:
    """Store a checkpoint, in a process that has read its parent or in a new one."""

    def begin(process: Process) -> Op[Any]:
        return process.put(
            put.checkpoint_id,
            put.values,
            put.parent_id,
            list(put.versions),
            namespace=put.namespace,
            run_id=put.run_id,
        )

    remembers = [put.parent_id] if warm and put.parent_id is not None else []
    return Call(name, begin, put, remembers)


def _deletion(name: str, begin: Callable[[Process], Op[None]], **record: Any) -> Call:
    return Call(name, begin, Deletion(threads=[THREAD], **record))


_WRITES = Call(
    "writes", lambda process: process.put_writes("2", WRITES.writes, WRITES.task_id), WRITES, ["2"]
)

CALLS: Mapping[str, Call] = {
    each.name: each
    for each in (
        put_call("put", CHILD),
        put_call("cold put", CHILD, warm=False),
        put_call("fork", FORK),
        put_call("cold fork", FORK, warm=False),
        put_call("put again", SECOND),
        _WRITES,
        Call("read", lambda process: process.read()),
        Call("warm read", lambda process: process.read(), remembers=["2"]),
        _deletion("prune", lambda process: process.prune(), kind="prune", kept=1),
        _deletion("delete", lambda process: process.delete_thread(), kind="delete_thread"),
        _deletion(
            "delete run",
            lambda process: process.delete_for_runs("old"),
            kind="delete_for_runs",
            run_ids=["old"],
        ),
    )
}


@dataclass
class Start:
    """The thread that all start from: two checkpoints, the second of which reuses segments of the first."""

    puts: Sequence[Put] = (FIRST, SECOND)
    harness: Harness = field(default_factory=Harness)
    ttl_seconds: int | None = None

    def __post_init__(self) -> None:
        """Store it."""
        process = self._process(0, lambda: self.harness.now)
        for each in self.puts:
            self.harness.run(put_call("", each).begin(process))

    def items(self) -> list[Item]:
        """Return what it has in the table."""
        return self.harness.model.items()

    def flow(self, call: Call, owner: int) -> MakeFlow:
        """Return what begins a call in a process of its own, whose tokens have an owner."""

        def make(clock: Callable[[], float]) -> Op[Any]:
            process = self._process(owner, clock)
            for each in call.remembers:
                self.harness.run(process.read(each))
            return call.begin(process)

        return make

    def _process(self, owner: int, clock: Callable[[], float]) -> Process:
        tokens = Tokens(owner)
        storage = Storage(
            codec=CODEC,
            cache=Cache(1 << 20, Facts(is_shared=False)),
            table=Table(TABLE, rng=tokens),
            ttl_seconds=self.ttl_seconds,
            clock=clock,
            rng=tokens,
        )
        return Process(self.harness, storage)
