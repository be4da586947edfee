"""What the client remembers is bounded, and the least recently used goes first."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._format.items import partition_of
from langgraph.checkpoint.dynamodb.gateway.opaque import SentValue
from langgraph.checkpoint.dynamodb.http.operations import Known, KnownCheckpoints


def known(size_bytes: int = 1) -> Known:
    """A checkpoint with a value of this size."""
    return Known("1", {"x": 1}, {"x": SentValue("bytes", bytes(size_bytes))})


def test_the_least_recently_used_is_forgotten() -> None:
    memory = KnownCheckpoints(20_000)
    places = [partition_of(f"thread {number}") for number in range(4)]
    for each in places[:2]:
        memory.remember(each, known(8000))
    assert memory.newest(places[0]) == known(8000)
    memory.remember(places[2], known(8000))
    assert [memory.newest(each) != Known() for each in places] == [True, False, True, False]
    # A new entry takes the place of the one before.
    memory.remember(places[2], known(8100))
    assert memory.newest(places[0]) == known(8000)
    # One for which there is no room drops no other.
    memory.remember(places[3], known(30_000))
    assert [memory.newest(each) != Known() for each in places] == [True, False, True, False]


def test_a_thread_is_forgotten_with_all_its_namespaces() -> None:
    memory = KnownCheckpoints(20_000)
    places = [partition_of("a"), partition_of("a", "inner"), partition_of("b")]
    for each in places:
        memory.remember(each, known())
    memory.forget_thread("a")
    assert [memory.newest(each) for each in places] == [Known(), Known(), known()]
    memory.forget_thread()
    assert memory.newest(places[2]) == Known()
