"""How long single operations take, beside a raw client that sends the same requests, and beside the AWS saver.

A chat of 100 KB grows by a message with every step. The process is warm: its connections are open, and it has
just stored the step before. The raw client sends and receives the same bytes and makes nothing of them; what
serializing the states takes, and no saver can do without, is shown beside it.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from benchmarks.clock import Times
from benchmarks.contestants import AWS, OURS, session_of
from benchmarks.figures import Figure, Section, within
from benchmarks.network import ROUND_TRIP_MS, distant
from benchmarks.raw import RawClient, Recorder, new_table
from benchmarks.report import table
from benchmarks.states import Thread, chat, message
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.limits import INDEX_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from benchmarks.raw import Round
    from tools.engine import Engine

STATE_BYTES = 100_000
LISTED = 20
_STEPS = 100
# A list takes AWS's saver as long as everything else together; fewer of them show as much.
_STEPS_PER_AWS_LIST = 10
_OWN, _RAW, _SERDE, _AWS = "ours", "raw", "serializer", "AWS"
_NEWEST: RunnableConfig = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
_HEADER = (
    *("", "rounds", "raw p50", "p99", "serializer p50"),
    *("ours p50", "p99", "/ raw", "AWS p50", "p99", "/ ours"),
)
# How many rounds, one after the other, each operation may need.
_READS = {"get_tuple", "list"}
_ROUNDS = {"put": (1, 3), "put_writes": (1, 1), "get_tuple": (1, 2), "list": (1, 2)}


def run(engine: Engine) -> Section:
    """Measure near the engine, and at a distance."""
    near = _Measured(engine)
    with distant(engine) as remote:
        far = _Measured(remote)
    figures = [
        within(
            f"p50 of {name} at {ROUND_TRIP_MS} ms, to the raw client's",
            2 if name == "list" else 1.15,
            far.p50_ms(name, _OWN) / far.p50_ms(name, _RAW),
            _remark(far, name),
        )
        for name in _ROUNDS
    ]
    return Section(
        f"Latency in milliseconds: a chat of {STATE_BYTES / 1000:.0f} KB, {_STEPS} steps of one message",
        (
            f"DynamoDB Local as it is\n{near.table()}",
            f"With a network of {ROUND_TRIP_MS} ms\n{far.table()}",
        ),
        [*figures, *(_rounds(name, far.rounds[name]) for name in _ROUNDS)],
        {"near": near.data(), "far": far.data()},
    )


class _Measured:
    """What one network showed."""

    def __init__(self, engine: Engine) -> None:
        with ExitStack() as stack:
            own_table, self._raw_table = (stack.enter_context(new_table(engine, OURS)) for _ in range(2))
            aws_table = stack.enter_context(new_table(engine, AWS))
            session = session_of(engine)
            self._recorder = Recorder(session)
            saver = DynamoDBSaver(own_table, session=session, endpoint_url=engine.endpoint_url)
            stack.callback(saver.close)
            self._client = RawClient(engine)
            stack.callback(self._client.close)
            aws = AWS.open(aws_table, session=session_of(engine), endpoint_url=engine.endpoint_url)
            self._own, self._aws = _Contestant(saver), _Contestant(aws)
            self._client.sends(self._recorder.take(), self._raw_table)()
            self._recorded: dict[str, Sequence[Round]] = {}
            # A list of so many needs them stored, and a warm process has done everything before.
            for step in range(-LISTED, _STEPS):
                if step <= 0:
                    self._times: dict[tuple[str, str], Times] = {}
                    self.rounds: dict[str, set[int]] = {name: set() for name in _ROUNDS}
                self._step(step)

    def _step(self, step: int) -> None:
        """Time each operation by all contestants, each of them first in a third of the steps."""
        aws, own, serializing = self._aws.calls(step), self._own.calls(step), self._own.serializing()
        for name in _ROUNDS:
            # What the saver sent in the step before: the raw client cannot go first with anything newer.
            sends = self._client.sends(self._recorded.get(name, ()), self._raw_table)
            calls = {_OWN: own[name], _RAW: sends, _AWS: aws[name]}
            for position in range(len(calls)):
                contestant = tuple(calls)[(step + position) % len(calls)]
                if (name, contestant) != ("list", _AWS) or step % _STEPS_PER_AWS_LIST == 0:
                    self._measure(name, contestant, calls[contestant])
            self._recorded[name] = self._recorder.take()
            self.rounds[name].add(len(self._recorded[name]))
            self._measure(name, _SERDE, serializing[name])

    def _measure(self, name: str, contestant: str, call: Callable[[], object]) -> None:
        self._times.setdefault((name, contestant), Times()).measure(call)

    def p50_ms(self, name: str, contestant: str) -> float:
        """Return a median."""
        return self._times[name, contestant].p50_ms

    def table(self) -> str:
        """Return all times, in milliseconds."""
        return table(_HEADER, [self._row(name) for name in _ROUNDS])

    def _row(self, name: str) -> tuple[str, ...]:
        raw, own, aws = (self._times[name, each] for each in (_RAW, _OWN, _AWS))
        numbers = (
            raw.p50_ms,
            raw.p99_ms,
            self.p50_ms(name, _SERDE),
            own.p50_ms,
            own.p99_ms,
            own.p50_ms / raw.p50_ms,
            aws.p50_ms,
            aws.p99_ms,
            aws.p50_ms / own.p50_ms,
        )
        title = f"list(limit={LISTED})" if name == "list" else name
        return (title, _span(self.rounds[name]), *(f"{number:.2f}" for number in numbers))

    def data(self) -> dict[str, object]:
        """Return everything that was measured."""
        seconds = {f"{name}, {contestant}": each.seconds for (name, contestant), each in self._times.items()}
        return {"seconds": seconds, "rounds": {name: sorted(seen) for name, seen in self.rounds.items()}}


class _Contestant:
    """One saver with a thread of its own."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        """Store the first state."""
        self._saver = saver
        self._thread = Thread(saver, "thread")
        self._messages = chat(saver.serde, STATE_BYTES)
        self._thread.put(messages=self._messages)

    def calls(self, step: int) -> dict[str, Callable[[], object]]:
        """Return the operations of the next step."""
        new = message(1000 + step)
        self._messages = [*self._messages, new]
        thread, saver = self._thread, self._saver
        arguments = thread.change(messages=self._messages)

        def put() -> None:
            thread.config = saver.put(*arguments)

        return {
            "put": put,
            "put_writes": lambda: saver.put_writes(thread.config, [("messages", [new])], "task"),
            "get_tuple": lambda: saver.get_tuple(_NEWEST),
            "list": lambda: list(saver.list(_NEWEST, limit=LISTED)),
        }

    def serializing(self) -> dict[str, Callable[[], object]]:
        """Return what the serializer alone has to do for each operation."""
        serde, messages = self._saver.serde, self._messages
        serialized = serde.dumps_typed(messages)
        return {
            "put": lambda: serde.dumps_typed(messages),
            "put_writes": lambda: serde.dumps_typed(messages[-1:]),
            "get_tuple": lambda: serde.loads_typed(serialized),
            "list": lambda: [serde.loads_typed(serialized) for _ in range(LISTED)],
        }


def _remark(measured: _Measured, name: str) -> str:
    own, raw, serde = (measured.p50_ms(name, each) for each in (_OWN, _RAW, _SERDE))
    remark = f"of {own:.1f} ms the requests take {raw:.1f} and the serializer {serde:.1f}"
    if name == "list":
        remark += f", for {LISTED} whole states; ours makes each message once, and copies it after that"
    return remark


def _rounds(name: str, seen: set[int]) -> Figure:
    least, most = _ROUNDS[name]
    reached = least <= min(seen) and max(seen) <= most
    remark = (
        f"with more than {INDEX_GROUP} segments, some 180 KB here, their ids are in an index segment, which has to be"
        " read before them (docs/decisions/0001)"
        if name in _READS
        else ""
    )
    return Figure(f"sequential round trips of {name}", _span({least, most}), _span(seen), reached, remark)


def _span(counts: set[int]) -> str:
    return " to ".join(map(str, sorted({min(counts), max(counts)})))
