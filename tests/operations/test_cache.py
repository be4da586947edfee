"""What a process remembers of segments: it saves reads, and never shows what the table does not have."""

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import INDEX_GROUP
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._runtime.storage import Cache, CachedThread
from tests.support.checkpoints import noise, thread_config
from tests.support.harness import THREAD, Harness, Process, Run, commits, confirms, deletes

BIG = noise(60_000)


def _methods(process: Process, checkpoint_id: str | None = None) -> list[list[str]]:
    """The requests of each round in which a process reads a checkpoint."""
    at = thread_config("t", "", checkpoint_id)
    run: Run[object] = process.harness.begin(get_tuple(process.storage, at))
    rounds = []
    while not run.done:
        if run.calls:
            rounds.append(sorted(call.method for call in run.calls))
        run.go_on()
    return rounds


def test_who_stored_a_checkpoint_reads_its_head_only(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {"big": BIG}))
    harness.run(process.put("2", {"big": BIG, "other": BIG[::-1]}, "1", ["other"]))
    harness.run(process.put_writes("2", [("x", noise(100_000))]))
    assert _methods(process) == [["query"]]


def test_who_read_a_checkpoint_looks_once_whether_it_counts(harness: Harness) -> None:
    harness.run(harness.process().put("1", {"big": BIG}))
    reader = harness.process()
    assert _methods(reader) == [["query"], ["query"]]
    assert _methods(reader) == [["query"], ["get_item"]]
    assert _methods(reader) == [["query"]]


def test_what_somebody_else_has_added_is_read_beside_the_look(harness: Harness) -> None:
    writer, reader = harness.process(), harness.process()
    harness.run(writer.put("1", {"big": BIG}))
    reader.get()
    harness.run(writer.put("2", {"big": BIG, "other": BIG[::-1]}, "1", ["other"]))
    assert _methods(reader) == [["query"], ["batch_get_item", "get_item"]]
    assert reader.values() == {"big": BIG, "other": BIG[::-1]}


def test_a_deleted_state_is_not_read_from_memory(harness: Harness) -> None:
    """A put that was under way stores a head all of whose segments have gone."""
    reader, other = harness.process(), harness.process()
    harness.run(other.put("1", {"big": BIG}))
    harness.run(other.put("2", {"big": BIG}, "1", []))
    reader.get()
    put = harness.begin(other.put("3", {"big": BIG, "x": 3}, "2", ["x"])).until(commits("3"))
    deletion = harness.begin(harness.process().delete_thread()).until(deletes("S#"))
    put.until(confirms)
    deletion.finish()
    assert harness.process().values() is None
    assert reader.values() is None


def test_what_is_remembered_is_checked_when_it_is_used(harness: Harness, process: Process) -> None:
    """As if memory had failed: the checksum of a segment covers its id, too."""
    harness.run(process.put("1", {"big": BIG}))

    cache, pk = process.storage.cache, items.partition_of(THREAD).pk
    thread = cache.thread(pk)
    assert thread is not None
    ids = map(items.segment_id_of, harness.items("S#").values())
    remembered = cache.segments(pk, thread.epoch, ids)
    one, other, *_ = remembered
    cache.remember_segments(pk, thread.epoch, {one: remembered[other], other: remembered[one]})
    with pytest.raises(CheckpointCorruptionError, match="checksum"):
        process.get()


def test_little_of_a_namespace_is_read_by_keys_behind_its_page(harness: Harness, process: Process) -> None:
    """Most of what it has belongs to checkpoints of before."""
    for count in range(1, 8):
        harness.run(
            process.put(str(count), {"big": noise(60_000, seed=count)}, str(count - 1) if count > 1 else None)
        )
    assert len(harness.items("S#")) > 35
    reader = harness.process()
    assert _methods(reader) == [["query"], ["query"], ["batch_get_item"]]
    assert reader.values() == {"big": noise(60_000, seed=7)}


def test_a_deleted_state_is_not_read_from_memory_by_a_new_index(harness: Harness) -> None:
    """What the head names itself was stored by a put that was under way; what that leads to has gone."""
    reader, other = harness.process(), harness.process()
    small, large = noise(200_000), noise(200_000) + noise(150_000, seed=1)
    harness.run(other.put("1", {"big": small}))
    assert 20 < len(harness.items("S#")) < INDEX_GROUP
    reader.get()
    deletion = harness.begin(harness.process().delete_thread()).until(deletes("C#"))
    put = harness.begin(other.put("2", {"big": large}, "1")).until(commits("2"))
    deletion.until(deletes("S#"))
    put.until(confirms)
    deletion.finish()
    assert harness.process().values() is None
    assert reader.values() is None


def test_namespaces_that_threads_register_at_once_are_all_remembered() -> None:
    cache, known = Cache(1 << 20), CachedThread(b"epoch", items.Life())
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            remember = partial(cache.remember_namespace, "t#", known, expires_at=None)
            list(pool.map(remember, map(str, range(400))))
    finally:
        sys.setswitchinterval(interval)
    found = cache.thread("t#", known.epoch)
    assert found is not None
    assert len(found.namespaces) == 400


def test_the_last_checkpoint_of_a_partition_is_known_while_it_is_cached(harness: Harness) -> None:
    process, cache = harness.process(), Cache(3000)
    harness.run(process.put("1", {}))
    entry = process.storage.cache.checkpoint("t#", "1")
    assert entry is not None
    assert cache.latest("t#") is None
    cache.remember_checkpoint("t#", "1", entry)
    cache.remember_checkpoint("t#", "2", entry)
    assert cache.latest("t#") == "2"
    cache.forget(("t#", "2"))
    assert cache.latest("t#") is None
    cache.remember_checkpoint("t#", "1", entry)
    for number in range(10):
        cache.remember_checkpoint(f"{number}#", "1", entry)
    assert cache.latest("t#") is None
