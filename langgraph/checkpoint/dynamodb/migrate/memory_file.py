"""Memories as a file of JSON lines, and back. `docs/memory.md` has the format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, BinaryIO

from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError, CheckpointFormatError

FORMAT = "langgraph-memories"
VERSION = 1
_DIGEST_BYTES = 32


def write_memories(records: Iterable[Mapping[str, Any]], file: BinaryIO) -> int:
    """Write records of `export_items` to a file that need not be seekable; return how many there were."""
    digest = blake2b(digest_size=_DIGEST_BYTES)

    def line(content: Mapping[str, Any]) -> None:
        data = json.dumps(content, ensure_ascii=False, allow_nan=True).encode() + b"\n"
        digest.update(data)
        file.write(data)

    line({"format": FORMAT, "version": VERSION})
    count = 0
    for count, record in enumerate(records, 1):  # noqa: B007 - the last one is the count.
        line(record)
    line({"end": count, "digest": digest.hexdigest()})
    return count


def read_memories(file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Read the records of a file, one after the other.

    Raises:
        CheckpointCorruptionError: The file is damaged or cut short; this may be raised behind the last record.
        CheckpointFormatError: A newer release wrote the file.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    data = file.readline()
    header = _parsed(data)
    if header.get("format") != FORMAT:
        msg = "this is not a file of memories; give one that `memories export` wrote"
        raise CheckpointCorruptionError(msg)
    if header.get("version") != VERSION:
        msg = f"the file has version {header.get('version')!r}; this release reads version {VERSION}"
        raise CheckpointFormatError(msg)
    count = 0
    while True:
        digest.update(data)
        data = file.readline()
        record = _parsed(data)
        if "end" in record:
            break
        count += 1
        yield record
    if (record["end"], record.get("digest")) != (count, digest.hexdigest()) or file.read(1):
        msg = "the file of memories is damaged: its lines were changed after the export; export it again"
        raise CheckpointCorruptionError(msg)


def _parsed(data: bytes) -> dict[str, Any]:
    if not data.endswith(b"\n"):
        msg = "the file of memories is cut short: its last line is missing; export it again"
        raise CheckpointCorruptionError(msg)
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        msg = (
            "the file of memories has a line that is not a JSON object; give one that `memories export` wrote"
        )
        raise CheckpointCorruptionError(msg)
    return record
