"""Memories, request by request: what a put replaces, how long they live, and how long a partition is registered."""

from collections.abc import Sequence
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError
from langgraph.checkpoint.dynamodb._format import items, limits
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op
from langgraph.store.dynamodb import batch, memory_items, partitions, reads
from langgraph.store.dynamodb.keys import Address, address_of, entry_partition
from langgraph.store.dynamodb.put import NewMemory, Times, put_all
from tests.store.conftest import storage_of
from tests.support.checkpoints import noise
from tests.support.harness import Harness


def _at(*labels: str) -> Address:
    return address_of(labels[:-1], labels[-1])


def _putting(
    harness: Harness,
    address: Address,
    value: dict[str, Any] | None,
    ahead_seconds: float = 0.0,
    **options: Any,
) -> Op[Any]:
    """The operation that stores a value, by a clock that may be ahead."""
    return put_all(storage_of(harness, ahead_seconds), [NewMemory(address, value, **options)])


def _put(harness: Harness, *given: Any, **options: Any) -> Any:
    [outcome] = harness.run(_putting(harness, *given, **options))
    return outcome


@pytest.fixture
def harness() -> Harness:
    """A table with two memories."""
    harness = Harness()
    for number, place in ((1, _at("a", "b", "1")), (2, _at("z", "b", "6"))):
        _put(harness, place, {"n": number})
        harness.now += 1
    return harness


@pytest.mark.parametrize(
    ("prefix", "under", "both"),
    [((), (), ()), (("a",), (), ("a",)), (("a",), ("a", "b"), ("a", "b")), (("a", "c"), ("a", "b"), None)],
)
def test_two_prefixes_have_what_is_under_both(prefix: Any, under: Any, both: Any) -> None:
    assert partitions.narrower(prefix, under) == partitions.narrower(under, prefix) == both


def _entry(harness: Harness) -> Any:
    return next(
        (each for each in harness.model.items() if each["SK"]["S"] == "P#b/" and each["PK"]["S"][0] == "z"),
        None,
    )


def test_a_partition_is_registered_until_nothing_lives_in_it(harness: Harness) -> None:
    pk, storage = _at("z", "b", "6").pk, storage_of(harness)
    storage.registered[pk] = harness.now
    harness.run(partitions.unregister(storage, pk, harness.now))
    assert _entry(harness) is not None
    _put(harness, _at("z", "b", "6"), None)
    # One that was registered later stays.
    harness.run(partitions.unregister(storage, pk, 0))
    assert (_entry(harness) is not None, pk in storage.registered) == (True, True)
    # A put comes between the mark and the last look.
    run = harness.begin(partitions.unregister(storage, pk, harness.now))
    run.until(lambda call: call.method == "update_item")
    run.go_on()
    _put(harness, _at("z", "b", "7"), {})
    run.finish()
    assert "leaving" not in _entry(harness)
    _put(harness, _at("z", "b", "7"), None)
    harness.run(partitions.unregister(storage, pk, harness.now))
    assert (_entry(harness), pk in storage.registered) == (None, False)
    harness.run(partitions.stay_registered(storage, pk))
    assert _entry(harness) is not None
    assert pk in storage.registered
    assert entry_partition(_entry(harness)) == pk


def test_a_large_record_replaces_an_older_memory_that_was_deleted_before(harness: Harness) -> None:
    address = _at("a", "b", "1")
    for value in (None, {"n": "again"}):
        _put(harness, address, value)
    newer = Times(1, int(harness.now + 1) * 1_000_000, None)
    assert _put(harness, address, {"n": noise(150_000).hex()}, times=newer) is not None


@pytest.mark.parametrize(
    ("expected", "times", "is_stored"),
    [
        (None, None, True),
        (memory_items.Expected(None), None, False),
        (memory_items.Expected("other"), None, False),
        (None, Times(1, 2, None), False),
        (None, Times(1, 10**17, None), True),
    ],
)
def test_a_put_stores_over_what_it_expects(
    harness: Harness, expected: memory_items.Expected | None, times: Times | None, *, is_stored: bool
) -> None:
    address = _at("a", "b", "1")
    large: Sequence[dict[str, Any]] = ({"n": "new"}, {"n": noise(150_000).hex()})
    for value in large:
        assert (_put(harness, address, value, expected=expected, times=times) is not None) == is_stored
        times = times and Times(1, times.updated_us + 1, None)
        [loaded] = harness.run(reads.get(storage_of(harness), [address]))
        assert loaded is not None
        assert loaded.value()["n"] == (value["n"] if is_stored else 1)
    # No segments are left of what was replaced, or not stored.
    assert bool([each for each in harness.model.items() if each["SK"]["S"].startswith("S#")]) == is_stored
    assert loaded is not None
    for kept in ({"expected": memory_items.Expected(loaded.memory.revision)}, {}):
        assert _put(harness, address, {"n": 2} if kept else None, **kept) is not None
    assert not [each for each in harness.model.items() if each["SK"]["S"].startswith("S#")]
    assert harness.run(reads.get(storage_of(harness), [address])) == [None]
    assert _put(harness, address, {}, expected=memory_items.Expected(None)) is not None


def test_a_memory_is_renewed_once_a_tenth_of_its_ttl_has_gone(harness: Harness) -> None:
    address = _at("t", "u", "k")
    _put(harness, address, {"n": noise(150_000).hex()}, ttl_seconds=1000)
    begun = harness.now

    def expiries() -> tuple[float, float]:
        parts = [each for each in harness.model.items() if each["PK"]["S"] == address.pk]
        ends = {each["SK"]["S"][:2]: items.number(each, "expires_at") or 0 for each in parts}
        return ends["M#"] - begun, ends["S#"] - begun

    def read() -> None:
        storage = storage_of(harness)
        [loaded] = harness.run(reads.get(storage, [address]))
        assert loaded is not None
        harness.run(reads.renew(storage, [loaded.memory]))

    assert expiries() == (1000, 3000)
    for seconds, ends in (
        (100, (1000, 3000)),
        (101, (1101, 3000)),
        (1100, (2100, 3000)),
        (2050, (3050, 5050)),
    ):
        harness.now = begun + seconds
        read()
        assert expiries() == ends
    harness.now = begun + 3050
    assert harness.run(reads.get(storage_of(harness), [address])) == [None]


def test_times_are_microseconds_of_the_epoch() -> None:
    assert reads.in_microseconds(reads.moment(1_700_000_000_123_456)) == 1_700_000_000_123_456
    assert reads.in_microseconds(reads.moment(5).replace(tzinfo=None)) == 5


def test_a_memory_that_lost_its_segments_is_damage(harness: Harness) -> None:
    address = _at("a", "b", "1")
    _put(harness, address, {"n": noise(150_000).hex()})
    for each in harness.model.items():
        if each["SK"]["S"].startswith("S#"):
            harness.remove(each)
    with pytest.raises(
        CheckpointCorruptionError, match=r"^item PK='a/b/%M#' .* segments that it needs are not in"
    ):
        harness.run(reads.get(storage_of(harness), [address]))


def _uploads(call: Call) -> bool:
    """Tell whether a request stores segments."""
    return call.method == "batch_write_item" and "PutRequest" in str(call.params)


@pytest.mark.parametrize(("seconds", "uploads"), [(0, 1), (1, 2)])
def test_an_upload_that_took_too_long_begins_again(harness: Harness, seconds: int, uploads: int) -> None:
    run = harness.begin(_putting(harness, _at("a", "b", "1"), {"n": noise(200_000).hex()}))
    run.until(_uploads)
    outcomes = run.perform()
    harness.now += limits.UPLOAD_SECONDS_MAX + seconds
    run.go_on(outcomes)
    assert 1 + sum(map(_uploads, run.trace())) == uploads


def test_a_memory_whose_clock_was_ahead_is_replaced_at_the_second_attempt(harness: Harness) -> None:
    _put(harness, _at("a", "b", "1"), {"n": 1}, ahead_seconds=50)
    run = harness.begin(_putting(harness, _at("a", "b", "1"), {"n": 2}))
    attempts = [call for call in run.trace() if call.method == "update_item"]
    assert len(attempts) == 2


def test_a_memory_lives_for_all_of_its_ttl() -> None:
    assert memory_items.expiry(60, 100.2) == 161
    assert batch.ttl_seconds(1.51) == 91
    assert batch.ttl_seconds(1e-9) == 1
    assert all(batch.ttl_seconds(each / 60) == each for each in range(1, 1000))
