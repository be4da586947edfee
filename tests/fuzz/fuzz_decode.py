"""A target for atheris: what decodes stored bytes, led by which lines of it they reach.

    .venv-fuzz/bin/python -m tests.fuzz.fuzz_decode -max_total_time=600

takes libFuzzer's options. The first byte of an input chooses what is done with the others: they stand in an attribute
as they are, or are sealed first, so that what is behind the checksum is reached. Whatever is raised is to be one of the
package's errors; anything else stops the run, and libFuzzer writes the input to a file, which it takes as an argument.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

# Installed in an environment of its own, and without types.
atheris: Any = import_module("atheris")

with atheris.instrument_imports(include=["langgraph.checkpoint.dynamodb"]):
    from langgraph.checkpoint.dynamodb._format import content, items
    from langgraph.checkpoint.dynamodb._format.codec import _envelope, parse_metadata, seal_plain
    from langgraph.checkpoint.dynamodb._format.items import Item, Part
    from langgraph.checkpoint.dynamodb._format.segments import expand, reach
    from langgraph.checkpoint.dynamodb.errors import CheckpointerError
    from tests.fuzz.tables import ENCRYPTED, PLAIN, Thread, loaded, run, threads, with_item

HEAD = items.key("thread#", items.checkpoint_prefix("1"))
WRITES = items.key("thread#", items.writes_sk("1", "task"))
SEGMENT = items.key("thread#", items.segment_sk(bytes(8)))


def _sealed(at: Item, name: str, raw: bytes) -> Item:
    """An item with content under the right checksum."""
    return {**at, name: Part((), (), PLAIN.seal(raw, at, name)).attribute(items.sort_key(at))}


def _enveloped(data: bytes) -> Item:
    """A segment whose header and payload are the bytes."""
    compression, name_bytes = [*data[:2], 0, 0][:2]
    sealed = _envelope(
        1 + compression // 128,
        compression % 128,
        data[2 : 2 + name_bytes],
        data[2 + name_bytes :],
        items.sort_key(SEGMENT),
    )
    return {**SEGMENT, items.DATA: {"B": sealed}}


def _indexes(data: bytes) -> dict[bytes, bytes]:
    """Index segments, each of which holds some of the bytes as ids of one byte."""
    ids = [bytes([each | 1]) * 8 for each in range(16)]
    return {
        each: b"".join(ids[byte % 16] for byte in data[place * 5 : place * 5 + 5])
        for place, each in enumerate(ids)
    }


def _read_all(thread: Thread, old: Item, new: Item) -> None:
    """Ask a thread with one item changed for its newest checkpoint, and for what its delta channels consist of."""
    table = loaded(with_item(thread, old, new))
    for name, operation in thread.readings().items():
        if "newest" in name:
            with suppress(CheckpointerError):
                run(table, operation)


def _in_thread(data: bytes) -> None:
    """Let the bytes stand in an attribute of a thread, as they are or sealed."""
    kind, place, attribute, *_ = [*data[:3], 0, 0, 0]
    thread = list(threads().values())[kind % 4]
    old = thread.items[place % len(thread.items)]
    names = [name for name, value in sorted(old.items()) if "B" in value]
    if not names:
        return
    name, rest = names[attribute % len(names)], data[3:]
    if kind & 4 and name in items.PARTS:
        part = items.parse_part(old, name)
        assert part is not None
        rest = Part(part.own, part.refs, thread.codec.seal(rest, old, name)).attribute(items.sort_key(old))[
            "B"
        ]
    elif kind & 4 and name == items.DATA:
        rest = seal_plain(rest, items.sort_key(old))
    _read_all(thread, old, {**old, name: {"B": rest}})


def _both_opened(data: bytes) -> None:
    item = _enveloped(data)
    for codec in (PLAIN, ENCRYPTED):
        with suppress(CheckpointerError):
            codec.open(item[items.DATA]["B"], item, items.DATA)


TARGETS: Sequence[Callable[[bytes], object]] = (
    lambda data: items.parse_part({**HEAD, items.BODY: {"B": data}}, items.BODY),
    lambda data: PLAIN.open(data, SEGMENT, items.DATA),
    _both_opened,
    lambda data: content.read_body(PLAIN, _sealed(HEAD, items.BODY, data), {}),
    lambda data: content.read_metadata(PLAIN, _sealed(HEAD, items.SEALED_METADATA, data), {}),
    lambda data: content.pending_writes(PLAIN, [_sealed(WRITES, items.WRITES, data)], {}),
    lambda data: PLAIN.loads("msgpack", data, HEAD),
    lambda data: PLAIN.loads("json", data, HEAD),
    lambda data: parse_metadata(HEAD, data.decode(errors="replace")),
    lambda data: expand(_indexes(data), _indexes(data)),
    lambda data: reach(_indexes(data), _indexes(data)),
    _in_thread,
)


def decode(data: bytes) -> None:
    """Hand the bytes to the target that their first one chooses."""
    with suppress(CheckpointerError):
        TARGETS[data[0] % len(TARGETS) if data else 0](data[1:])


def main() -> None:
    """Let libFuzzer try inputs until one of them fails or the time is up."""
    logging.disable(logging.CRITICAL)
    threads()
    atheris.Setup(sys.argv, decode)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
