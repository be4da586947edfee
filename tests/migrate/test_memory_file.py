"""Memories as a file: what is written is read again, and what was changed is noticed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointFormatError
from langgraph.checkpoint.dynamodb.migrate.memory_file import read_memories, write_memories

RECORDS: list[dict[str, Any]] = [{"key": "ü\n", "value": {"n": 1.0}}, {"key": "two", "value": {"n": 1}}]


@pytest.mark.parametrize("records", [RECORDS, []], ids=["two", "none"])
def test_what_is_written_is_read(records: list[dict[str, Any]]) -> None:
    file = io.BytesIO()
    assert write_memories(iter(records), file) == len(records)
    assert len(file.getvalue().splitlines()) == len(records) + 2
    file.seek(0)
    assert json.dumps([*read_memories(file)]) == json.dumps(records)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda lines: lines[:-1], CheckpointCorruptionError, "cut short"),
        (lambda lines: [*lines[:-1], lines[-1][:-1]], CheckpointCorruptionError, "cut short"),
        (lambda lines: [lines[0], *lines[2:]], CheckpointCorruptionError, "damaged"),
        (lambda lines: [lines[0], lines[2], lines[1], lines[3]], CheckpointCorruptionError, "damaged"),
        (lambda lines: [*lines, b"\n"], CheckpointCorruptionError, "damaged"),
        (lambda lines: [lines[0], b"3\n", *lines[1:]], CheckpointCorruptionError, "not a JSON object"),
        (lambda lines: [lines[0], b"{\n", *lines[1:]], CheckpointCorruptionError, "not a JSON object"),
        (
            lambda lines: [lines[0], b"[" * 100_000 + b"\n", *lines[1:]],
            CheckpointCorruptionError,
            "not a JSON object",
        ),
        (lambda lines: [b"{}\n", *lines[1:]], CheckpointCorruptionError, "not a file of memories"),
        (
            lambda lines: [lines[0].replace(b"1", b"2"), *lines[1:]],
            CheckpointFormatError,
            "reads version 1",
        ),
    ],
    ids=[
        "cut",
        "cut in a line",
        "less",
        "order",
        "more",
        "number",
        "no JSON",
        "too deep",
        "another format",
        "newer",
    ],
)
def test_what_was_changed_is_noticed(
    change: Callable[[list[bytes]], list[bytes]], error: type[Exception], says: str
) -> None:
    file = io.BytesIO()
    write_memories(RECORDS, file)
    changed = b"".join(change(file.getvalue().splitlines(keepends=True)))
    with pytest.raises(error, match=says):
        list(read_memories(io.BytesIO(changed)))
