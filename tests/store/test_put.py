"""A put of a memory, request by request: uploads that take long, clocks that differ, and how long a value lives."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._format.limits import UPLOAD_SECONDS_MAX
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op
from langgraph.store.dynamodb.batch import ttl_seconds
from langgraph.store.dynamodb.keys import address_of
from langgraph.store.dynamodb.memory_items import expiry, pack_value
from langgraph.store.dynamodb.put import NewMemory, put
from tests.store.conftest import storage_of
from tests.support.checkpoints import noise
from tests.support.harness import Harness

ADDRESS = address_of(("memories", "ada"), "food")


def put_in(harness: Harness, size: int, ahead_seconds: float = 0.0) -> Op[Any]:
    """The operation that stores a value of so many bytes, by a clock that is ahead."""
    storage, value = storage_of(harness, ahead_seconds), {"text": noise(size).hex()}
    return put(storage, NewMemory(ADDRESS, value), pack_value(storage.codec, value, "the value"))


def _uploads(call: Call) -> bool:
    """Tell whether a request stores segments."""
    return call.method == "batch_write_item" and "PutRequest" in str(call.params)


@pytest.mark.parametrize(("seconds", "uploads"), [(0, 1), (1, 2)])
def test_an_upload_that_took_too_long_begins_again(seconds: int, uploads: int) -> None:
    harness = Harness()
    run = harness.begin(put_in(harness, 200_000))
    run.until(_uploads)
    outcomes = run.perform()
    harness.now += UPLOAD_SECONDS_MAX + seconds
    run.go_on(outcomes)
    assert 1 + sum(map(_uploads, run.trace())) == uploads


def test_a_memory_whose_clock_was_ahead_is_replaced_at_the_second_attempt() -> None:
    harness = Harness()
    harness.run(put_in(harness, 10, ahead_seconds=50))
    run = harness.begin(put_in(harness, 20))
    attempts = [call for call in run.trace() if call.method == "update_item"]
    assert len(attempts) == 2


def test_a_memory_lives_for_all_of_its_ttl() -> None:
    assert expiry(60, 100.2) == 161
    assert ttl_seconds(1.51) == 91
    assert ttl_seconds(1e-9) == 1
    assert all(ttl_seconds(each / 60) == each for each in range(1, 1000))
