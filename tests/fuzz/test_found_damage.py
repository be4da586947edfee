"""Damage that once ended in another error or in a wrong value, each in the smallest form that shows it."""

from __future__ import annotations

import pytest

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointFormatError
from langgraph.checkpoint.dynamodb._format import items
from tests.fuzz.tables import Thread, loaded, run, threads, with_item


def _damaged(sk: str, name: str, value: dict[str, object] | None) -> Thread:
    """The plain thread with one attribute of one item replaced or removed."""
    thread = threads()["plain"]
    item = next(each for each in thread.items if items.sort_key(each) == sk)
    rest = {other: content for other, content in item.items() if other != name}
    return with_item(thread, item, rest if value is None else {**rest, name: value})


def test_a_namespace_marker_without_its_token_is_damage() -> None:
    thread = _damaged("N#sub|inner:%231", items.REGISTERED, None)
    with pytest.raises(CheckpointCorruptionError, match="SK='N#"):
        run(loaded(thread), threads()["plain"].changes()["delete_thread"])


@pytest.mark.parametrize(
    "kind",
    [
        "plain",
        *(pytest.param(each, marks=pytest.mark.search) for each in ("encrypted", "segmented", "delta")),
    ],
)
def test_no_flipped_byte_gives_a_wrong_answer(kind: str) -> None:
    """Damage to anything that is stored in binary is an error, or has no effect; it never changes an answer."""
    thread = threads()[kind]
    reading = thread.readings()["list"]
    right, binary, noticed = run(loaded(thread), reading), set[str](), set[str]()
    for item in thread.items:
        for name, data in ((name, value["B"]) for name, value in item.items() if "B" in value):
            binary.add(name)
            for position in {0, 1, 3, len(data) // 2, len(data) - 1} & {*range(len(data))}:
                flipped = bytearray(data)
                flipped[position] ^= 0x41
                damaged = with_item(thread, item, {**item, name: {"B": bytes(flipped)}})
                try:
                    assert run(loaded(damaged), reading) == right
                except (CheckpointCorruptionError, CheckpointFormatError):
                    noticed.add(name)
    # An epoch decides nothing that a reader of a complete checkpoint sees.
    assert noticed == {each for each in binary if not each.endswith(items.EPOCH)} - {items.REGISTERED}
