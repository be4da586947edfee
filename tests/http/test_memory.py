"""What the client remembers is bounded, and the least recently used goes first."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb.http.memory import LastUsed
from tests.support.forks import in_a_child, needs_fork

pytestmark = needs_fork


def test_the_least_recently_used_is_forgotten() -> None:
    memory = LastUsed[str](20_000)
    places = [(f"thread {number}", "") for number in range(4)]
    for each in places[:2]:
        memory.keep(each, "entry", 8000)
    assert memory.get(places[0])
    memory.keep(places[2], "entry", 8000)
    assert [memory.get(each) is not None for each in places] == [True, False, True, False]
    # A new entry takes the place of the one before.
    memory.keep(places[2], "entry", 8100)
    assert memory.get(places[0])
    memory.keep(places[3], "entry", 30_000)
    assert [memory.get(each) for each in places] == [None] * 4


def test_a_child_does_not_wait_for_a_lock_that_its_parent_held() -> None:
    memory = LastUsed[str](20_000)
    # Another OS thread may have it when a process forks.
    with memory._lock:  # noqa: SLF001 - nothing public holds it for long enough.
        assert in_a_child(lambda: memory.keep(("a", ""), "entry", 1)) == 0


def test_a_thread_is_forgotten_with_all_its_namespaces() -> None:
    memory = LastUsed[str](20_000)
    places = [("a", ""), ("a", "inner"), ("b", "")]
    for each in places:
        memory.keep(each, "entry", 1)
    memory.forget("a")
    assert [memory.get(each) is not None for each in places] == [False, False, True]
    memory.forget()
    assert memory.get(("b", "")) is None
