"""Each attribute that is stored has a row in `ATTRIBUTES`, and `verify` checks each of a thread."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format import items, schema
from langgraph.checkpoint.dynamodb._format.attributes import ATTRIBUTES, HEAD, WRITES, Holds, kind_of
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._operations import thread_lock
from langgraph.checkpoint.dynamodb._operations.entries import enter_thread
from langgraph.checkpoint.dynamodb._operations.threads import set_thread
from langgraph.checkpoint.dynamodb._operations.verify import Verification, verify_thread
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.store.dynamodb import DynamoDBStore, keys, memory_items
from tests.support.checkpoints import all_items, checkpoint_of, noise, thread_config
from tests.support.harness import ENCRYPTED, TABLE, THREAD, Harness, Process

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

TTL_SECONDS = 1000
LARGE = noise(130_000)
SUBGRAPH = "child:1"
OF_THREADS = {HEAD, WRITES, "segment", "namespace marker", "thread item", "lock"}

KEYS = {schema.PARTITION_KEY, schema.SORT_KEY}
# DynamoDB itself keeps the types of these.
INDEX_KEYS = {each["AttributeName"] for each in schema.table_schema(TABLE)["AttributeDefinitions"]}


def kind_in(item: Item) -> str:
    """Return what `ATTRIBUTES` calls an item of any table."""
    pk, sk = items.partition_key(item), items.sort_key(item)
    if not pk.endswith(("%M#", "%N#", "%K#")):
        return str(kind_of(item))
    if sk.startswith("M#"):
        return "memory" if "value" in item else "tombstone"
    kinds = {
        "S#": "segment of a memory",
        "V#": "vector",
        "P#": "partition entry",
        "K#": "cache entry",
        "R": "cache marker",
    }
    return next(kind for begins, kind in kinds.items() if sk.startswith(begins))


def by_kind(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Return the attributes of each kind."""
    found: dict[str, set[str]] = {}
    for kind, name in pairs:
        found.setdefault(kind, set()).add(name)
    return found


@dataclass
class Seen:
    """An item, and the table in which it was."""

    item: Item
    table: list[Item]
    process: Process


@dataclass
class Observer:
    """Runs operations request by request, and keeps an item for each attribute that it sees."""

    harness: Harness
    seen: dict[tuple[str, str], Seen] = field(default_factory=dict)

    def run(self, process: Process, operation: Op[Any]) -> None:
        """Run an operation, and look at the table after each round."""
        run = self.harness.begin(operation)
        while not run.done:
            run.go_on()
            self.look(process)

    def look(self, process: Process) -> None:
        """Keep an item for each attribute that is new."""
        table = [dict(each) for each in self.harness.model.items()]
        for item in table:
            for name in item.keys() - KEYS:
                self.seen.setdefault((str(kind_of(item)), name), Seen(item, table, process))


@cache
def threads() -> dict[tuple[str, str], Seen]:
    """Store what a thread can have, plain and encrypted, and return an item for each attribute of each kind."""
    observer = Observer(Harness())
    process = observer.harness.process(TTL_SECONDS)
    process = replace(process, storage=replace(process.storage, owner_from="user_id"))
    _converse(observer, process)
    # Writes keep the state for longer, with the ancestors of delta channels.
    observer.harness.now += TTL_SECONDS * 0.97
    observer.run(process, process.put_writes("3", [("x", 1)], "late"))
    observer.run(process, set_thread(process.storage, THREAD, "ada", "Trains", None))
    hold = thread_lock.hold_on(THREAD, 60, 0, process.storage.rng.randbytes(thread_lock.TOKEN_BYTES))
    observer.run(process, thread_lock.acquire(thread_lock.TableHolder(process.storage), hold, 0))
    _copy(observer, process)
    observer.run(process, process.prune())
    observer.run(process, process.delete_thread())
    other = Observer(Harness(), observer.seen)
    _converse(other, other.harness.process(codec=ENCRYPTED))
    return observer.seen


def _converse(observer: Observer, process: Process) -> None:
    counters: Any = {"counters_since_delta_snapshot": {"log": [1, 1]}}
    more = {"parents": {"": "1"}, **counters}
    for namespace in ("", SUBGRAPH):
        for put in (
            process.put("1", {"x": LARGE}, namespace=namespace, run_id="run", step=-1, parents={"": "1"}),
            process.put("2", {"x": LARGE, "y": 1}, "1", ["y"], namespace=namespace, run_id="other", **more),
            process.put("3", {"x": LARGE, "y": 1}, "2", [], namespace=namespace, text="é" * 200_000, **more),
        ):
            observer.run(process, put)
        special = [(name, LARGE) for name in ("__error__", "__scheduled__", "__interrupt__", "__resume__")]
        for task, writes in (("task", [("x", LARGE)]), ("other", special)):
            observer.run(process, process.put_writes("3", writes, task, namespace=namespace))


def _copy(observer: Observer, process: Process) -> None:
    observer.run(process, process.copy_thread("copy"))
    observer.run(process, enter_thread(process.storage, "copy", "user_id"))


def test_a_thread_has_the_attributes_of_the_code() -> None:
    assert by_kind(threads()) == {kind: {*ATTRIBUTES[kind]} for kind in OF_THREADS}


def test_the_indexes_of_the_directory_hold_what_a_thread_item_has() -> None:
    assert set(schema.DIRECTORY_ATTRIBUTES) <= ATTRIBUTES["thread item"].keys()


def test_each_attribute_that_has_a_constant_has_a_row() -> None:
    """Also one that no operation of these tests stores."""
    prefixes = {"CHECKPOINTS", "AFTER_CHECKPOINTS", "NAMESPACES", "SEGMENTS", "THREAD", "LOCK"}
    constants = {
        value
        for name, value in vars(items).items()
        if re.fullmatch("[A-Z][A-Z_]*", name) and type(value) is str and name not in prefixes
    }
    rows = {name for each in ATTRIBUTES.values() for name in each}
    assert constants - KEYS <= rows


@pytest.mark.parametrize("serde", [None, EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")])
def test_what_is_encrypted_shows_in_no_attribute_and_ids_show_in_theirs(
    engine: Engine, client: DynamoDBClient, table_name: str, sessions: dict[str, Any], serde: Any
) -> None:
    """And memories and cached nodes have the attributes of the code. What repeats compresses, so marks look random."""
    pytest.importorskip("numpy", reason="numpy, of the extra `vectors`, is not installed here")
    secret, known = "zX7qLmP0vRtY3kWc9sHf", "bN4gJ8dTe6QaU1iOp2Ky"
    options: Any = {"endpoint_url": engine.endpoint_url, "session": sessions["session"], "serde": serde}
    digests: Any = {**options, "owner_key": b"0123456789abcdef"}
    with DynamoDBSaver(table_name, owner_from="user_id", ttl_seconds=60, **digests) as saver:
        for parent, name in ((None, known), (known, f"{known}-2")):
            config = thread_config(known, known, parent)
            config["configurable"]["user_id"] = secret
            checkpoint = checkpoint_of(name, {secret: secret, "large": LARGE.hex() + secret})
            metadata: Any = {"source": secret, secret: secret, "parents": {"": known}, "run_id": known}
            config = saver.put(config, checkpoint, metadata, checkpoint["channel_versions"])
            saver.put_writes(config, [(secret, secret), ("large", LARGE)], known)
            saver.put_writes(config, [("__interrupt__", secret), ("__error__", secret)], f"{known}-2")
        saver.set_thread(known, owner=secret, title=secret, metadata={secret: secret})
    index: Any = {"dims": 2, "embed": lambda texts: [[1.0, 2.0] for _ in texts]}
    with DynamoDBStore(table_name, index=index, **options) as store:
        namespace = (known, known, known)
        for key in ("gone", "back"):
            store.put(namespace, key, {secret: secret}, index=False)
            store.delete(namespace, key)
        store.put(namespace, "back", {secret: secret}, index=False)
        store.put(namespace, known, {secret: secret}, ttl=60)
        store.put(namespace, "large", {secret: LARGE.hex() + secret}, index=False, ttl=60)
        # As an erasure leaves it that dies in between.
        entry = keys.entry_key(keys.partition_of(namespace))
        store.runner.run(store.storage.table.try_update(entry, memory_items.leave(b"mark", 1 << 40)))
    cache = DynamoDBCache[str](table_name, **digests)
    with cache:
        cache.set({((known,), secret): (secret, 60)})
    stored = all_items(client, table_name)
    found = by_kind((kind_in(item), name) for item in stored for name in item.keys() - KEYS)
    for kind in ATTRIBUTES.keys() - OF_THREADS:
        assert found[kind] == {*ATTRIBUTES[kind]}
    for item in stored:
        row = ATTRIBUTES[kind_in(item)]
        for name in item.keys() - KEYS:
            assert name in row, f"{kind_in(item)} has the attribute {name}, which has no row in ATTRIBUTES"
            shown = f"attribute {name} of {kind_in(item)}: {item[name]}"
            if serde is not None:
                assert secret not in shown
                assert known not in shown or row[name][1] is Holds.ID, shown
                assert row[name][1] is not Holds.READABLE, shown


def verified(seen: Seen, changed: Item) -> Verification:
    """Verify a thread with an item in the place of another one."""
    harness = Harness()
    harness.now = seen.process.harness.now
    for item in seen.table:
        harness.change(changed if items.key_of(item) == items.key_of(changed) else item)
    codec = seen.process.storage.codec
    thread = items.parse_partition(items.partition_key(changed)).thread_id
    return harness.run(verify_thread(harness.process(codec=codec).storage, thread))


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in sorted(OF_THREADS) for name in ATTRIBUTES[kind] if name not in INDEX_KEYS],
)
def test_verify_checks_each_attribute(kind: str, name: str) -> None:
    seen = threads()[kind, name]
    assert verified(seen, seen.item).is_sound
    damaged = verified(seen, {**seen.item, name: {"NULL": True}})
    assert any(re.search(rf"attribute {name}\b", each) for each in damaged.messages)
    assert not damaged.is_sound
