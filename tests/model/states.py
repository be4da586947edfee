"""States of the explored system as values: what the table holds, and how far each actor is.

Generators cannot be copied, and need not be: where an actor stands follows from the answers that it has received, and
from the time at which it received each. So a `Local` is a node of a tree whose edges are answers. Who comes to a node
for the first time runs the operation there once, from the start if need be; later visits cost a look into the tree.
What a request does to the items that it touches is remembered in the same way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from botocore.exceptions import ClientError

from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Step, Work
from tests.simulation.simulator import READS, effects_of, keys_of
from tests.support.dynamodb_model import DynamoDBModel
from tests.support.dynamodb_values import Item, copied
from tests.support.harness import TABLE, result_of

Key: TypeAlias = tuple[str, str]

_MARK = 0xFE


class Tokens(random.Random):
    """Random bytes that are never the same twice, and say whose they are."""

    def __init__(self, owner: int) -> None:
        """Take the number of their owner."""
        super().__init__(0)
        self._owner = owner
        self._count = 0

    def randbytes(self, n: int) -> bytes:
        """Return the next token."""
        self._count += 1
        return bytes((_MARK, self._owner)) + self._count.to_bytes(n - 2, "big")

    def random(self) -> float:
        """Return the same number each time: how long is waited does not matter here."""
        return 0.5


def hashed(value: Any) -> int:
    """Return a hash of what a value prints, the same in every process."""
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=8).digest(), "big")


class Stored:
    """An item of the table. There is one object for equal ones, so they are compared by identity."""

    __slots__ = ("digest", "item")

    def __init__(self, item: Item, digest: int) -> None:
        """Take the item and its hash."""
        self.item = item
        self.digest = digest


Contents: TypeAlias = dict[Key, Stored]


class Table:
    """What the table holds. There is one object for equal ones."""

    __slots__ = ("__weakref__", "contents", "digest")

    def __init__(self, contents: Contents, digest: int) -> None:
        """Take the items and the hash of all together."""
        self.contents = contents
        self.digest = digest


@dataclass(frozen=True, eq=False)
class Request:
    """A request that is one effect: DynamoDB carries out the writes of a batch one after the other."""

    call: Call
    number: int
    """Equal requests have the same."""
    keys: Sequence[Key]
    """The items that it names."""
    covers: Callable[[Key], bool] | None
    """Which items it looks at, where it does not name them."""

    @property
    def is_read(self) -> bool:
        """Whether it leaves the table as it is."""
        return self.call.method in READS


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a request gave. There is one object for equal ones."""

    value: Any
    digest: int

    @property
    def failed(self) -> bool:
        """Whether its condition did not hold."""
        return isinstance(self.value, ClientError)


Effect: TypeAlias = tuple[Outcome, Mapping[Key, Stored | None]]


class Storage:
    """DynamoDB with a table that is a value: a request is a function of what it touches."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._model = DynamoDBModel(table_schema(TABLE), lambda: 0.0)
        self._stored: dict[int, Stored] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._tables: WeakValueDictionary[int, Table] = WeakValueDictionary()
        self._numbers: dict[str, int] = {}
        self._effects: dict[Any, Effect] = {}

    def table(self, items: Sequence[Item]) -> Table:
        """Return a table with some items."""
        changes = {(item["PK"]["S"], item["SK"]["S"]): self._store(item) for item in items}
        return self.changed(Table({}, 0), changes)

    def changed(self, table: Table, changes: Mapping[Key, Stored | None]) -> Table:
        """Return a table after some changes."""
        new, digest = {**table.contents}, table.digest
        for key, stored in changes.items():
            for each in (new.pop(key, None), stored):
                if each is not None:
                    digest ^= each.digest
            if stored is not None:
                new[key] = stored
        known = self._tables.get(digest)
        if known is None:
            known = self._tables[digest] = Table(new, digest)
        return known

    def request(self, call: Call) -> Request:
        """Say what a request touches."""
        number = self._numbers.setdefault(f"{call.method} {call.params}", len(self._numbers))
        if call.method == "query":
            return Request(call, number, (), _covers(call.params))
        named = [(each["PK"]["S"], each["SK"]["S"]) for each in keys_of(call.params)]
        return Request(call, number, named, None)

    def perform(self, contents: Contents, request: Request) -> Effect:
        """Carry out a request; return its outcome and the items that it changed."""
        touched: Any
        if request.covers is None:
            touched = tuple([contents.get(key) for key in request.keys])
        else:
            touched = frozenset([stored for key, stored in contents.items() if request.covers(key)])
        known = self._effects.get((request.number, touched))
        if known is None:
            known = self._effects[request.number, touched] = self._perform(request, touched)
        return known

    def _perform(self, request: Request, touched: Sequence[Stored | None]) -> Effect:
        self._model.load([each.item for each in touched if each is not None])
        value: Any
        try:
            value = self._model.handle(request.call.method, request.call.params)
        except ClientError as error:
            value = error
        outcome = self._outcome(value)
        if request.is_read or outcome.failed:
            return outcome, {}
        there = {(item["PK"]["S"], item["SK"]["S"]): item for item in self._model.items()}
        changes = {key: self._store(there[key]) if key in there else None for key in request.keys}
        return outcome, changes

    def _store(self, item: Item) -> Stored:
        # What an item prints must not depend on how it came to be.
        item = dict(sorted(item.items()))
        digest = hashed(item)
        return self._stored.setdefault(digest, Stored(item, digest))

    def _outcome(self, value: Any) -> Outcome:
        digest = hashed(value.response if isinstance(value, ClientError) else value)
        return self._outcomes.setdefault(digest, Outcome(value, digest))


def _covers(params: Mapping[str, Any]) -> Callable[[Key], bool]:
    """Return which items a query looks at; that of an index looks at all."""
    if "IndexName" in params:
        return lambda _key: True
    values = {name: value["S"] for name, value in params["ExpressionAttributeValues"].items()}
    pk, first, last = values[":pk"], values.get(":a", ""), values.get(":b")
    if last is None:
        return lambda key: key[0] == pk and key[1].startswith(first)
    return lambda key: key[0] == pk and first <= key[1] <= last


class Status(Enum):
    """Where an actor is in its call."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD = "dead"
    """Its process died within a round. One that died between two rounds just does not move any more."""


MakeFlow: TypeAlias = Callable[[Callable[[], float]], Generator[Any, Any, Any]]
"""Begins an operation in a process of its own, given its clock."""


class Local:
    """How far an actor is. There is one object for equal answers."""

    __slots__ = ("answers", "before", "digest", "done", "now", "result", "round", "running", "status", "then")

    def __init__(self, before: Local | None, digest: int, status: Status = Status.RUNNING) -> None:
        """Come from another one."""
        self.before = before
        self.digest = digest
        self.status = status
        self.result: Any = None
        """What the operation returned or raised, where it has just ended."""
        self.answers: Sequence[Outcome] = ()
        """Those of the round before."""
        self.now = 0.0
        """When it received them."""
        self.round: Sequence[Sequence[Request]] = ()
        """What it waits for: the effects of each request, none where the step was work."""
        self.done: Mapping[int, Outcome] = {}
        """Those that have come already of the round's effects, by their position."""
        self.then: dict[Any, Local] = {}
        self.running: _Running | None = None
        """The operation, if it has not gone on from here."""

    @property
    def effects(self) -> list[Request]:
        """All effects of the round."""
        return [each for effects in self.round for each in effects]


class _Running:
    """An operation that stands at a place: in a process of its own, with the work that it has asked for done."""

    def __init__(self, make: MakeFlow) -> None:
        self.now = 0.0
        self._flow = make(lambda: self.now)
        self._outcomes: list[Any] | None = None

    def go_on(self, local: Local) -> Sequence[Step]:
        """Give the operation its answers; return the round that it asks for."""
        self.now = local.now
        if self._outcomes is not None:
            assert local.before is not None
            left = iter(local.answers)
            for position, effects in enumerate(local.before.round):
                answers = [next(left).value for _ in effects]
                if answers:
                    # The operation may change what it is given.
                    is_error = isinstance(answers[0], Exception)
                    self._outcomes[position] = answers[0] if is_error else copied(answers[0])
        while True:
            round_: Sequence[Step] = self._flow.send(self._outcomes)
            self._outcomes = [result_of(step) if isinstance(step, Work) else None for step in round_]
            if any(isinstance(step, Call) for step in round_):
                return round_


class Actor:
    """An operation in a process, and all the places that it has come to."""

    def __init__(self, name: str, make: MakeFlow, storage: Storage) -> None:
        """Take what begins the operation."""
        self.name = name
        self._make = make
        self._storage = storage
        self.start = Local(None, hashed(name))
        self._ends: dict[Status, Local] = {
            each: Local(None, hashed((name, each.value)), each)
            for each in Status
            if each is not Status.RUNNING
        }

    def end(self, status: Status) -> Local:
        """Return where an actor is that has ended: how it came there does not matter any more."""
        return self._ends[status]

    def receive(self, local: Local, answers: Mapping[int, Outcome], now: float) -> Local:
        """Return where an actor is that receives some answers of its round; at its start there is no round."""
        done = {**local.done, **answers}
        base = local if not local.done else local.before
        assert base is not None
        key: Any = (now, *sorted((position, each.digest) for position, each in done.items()))
        known = base.then.get(key)
        if known is None:
            known = base.then[key] = Local(base, hashed((base.digest, key)))
            if len(done) < len(base.effects):
                known.round, known.done = base.round, done
            else:
                known.answers, known.now = [done[position] for position in sorted(done)], now
                self._run(known)
        return known

    def _run(self, local: Local) -> None:
        """Run the operation from the place before, or from its start where it has gone on from there already."""
        path = [local]
        while (before := path[-1].before) is not None and before.running is None:
            path.append(before)
        if before is None or before.running is None:
            path.pop()
            running = _Running(self._make)
        else:
            running, before.running = before.running, None
        try:
            for each in reversed(path):
                round_ = running.go_on(each)
        except StopIteration as stop:
            local.status, local.result = Status.SUCCEEDED, stop.value
        except TypeError:
            # A mutant that no longer fits the code: to be mended, and not to be counted as found.
            raise
        except Exception as error:  # noqa: BLE001 - the judge says what it means.
            local.status, local.result = Status.FAILED, error
        else:
            local.round = [
                [self._storage.request(each) for each in effects_of(step)] if isinstance(step, Call) else []
                for step in round_
            ]
            local.running = running
