"""A thread is a file and a thread again; what is not such a file is refused before anything is written."""

import io
import json
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointerInputError,
    CheckpointFormatError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb.migrate import (
    FileEndpoint,
    SaverEndpoint,
    Status,
    endpoint_of,
    export_thread,
    migrate,
)
from tests.migrate.test_passthrough import Own
from tests.migrate.threads import WAITING, answer, begin, empty, statuses
from tests.support.checkpoints import Conversation, noise, store, stored_values, thread_config


def exported(source: SaverEndpoint, thread_id: str = "thread-1") -> io.BytesIO:
    """A thread as a file."""
    file = io.BytesIO()
    result = export_thread(source, thread_id, file)
    assert result.bytes == len(file.getvalue())
    return file


@pytest.mark.engines("dynamodb-local")
def test_a_thread_is_a_file_and_a_thread_again(make_saver: Callable[..., DynamoDBSaver]) -> None:
    source, target = endpoint_of(make_saver()), endpoint_of(make_saver())
    for thread_id in begin(source.saver, ["approvals", "delta", "fork"]):
        file = exported(source, thread_id)
        copy = f"copy of {thread_id}"
        found = FileEndpoint(file, target, copy)
        [report] = migrate(found, target, found.thread_ids())
        assert (report.thread_id, report.status, report.problems) == (copy, Status.MOVED, [])
        again = exported(target, copy)
        assert again.getvalue().split(b"\n")[1:-2] == file.getvalue().split(b"\n")[1:-2]
    graph = WAITING["approvals"][0](target.saver)
    state = graph.get_state({"configurable": {"thread_id": "copy of approvals"}})
    assert len(state.interrupts) == 2
    assert answer(source.saver, "approvals")["log"][-1] == "closed after 4"


def test_what_comes_again_is_in_the_file_once() -> None:
    source = empty()
    talk = Conversation(source.saver, "talk")
    said = []
    for number in range(20):
        said.append(noise(5_000, seed=number))
        talk.put(said=list(said))
    assert len(exported(source, "talk").getvalue()) < 4 * 20 * 5_000
    target = empty()
    found = FileEndpoint(exported(source, "talk"), target)
    assert statuses(migrate(found, target, ["talk"])) == {"talk": Status.MOVED}
    assert stored_values(target.saver, thread_config("talk")) == {"said": said}


def test_what_was_encrypted_is_not_in_the_file_and_is_again_after_it() -> None:
    one, other = (EncryptedSerializer.from_pycryptodome_aes(key=key * 16) for key in (b"1", b"2"))
    source, target = empty(serde=one), empty(serde=other)
    store(source.saver, thread_config(), "1", {"said": HumanMessage("hello", id="1")})
    found = FileEndpoint(exported(source), target)
    assert statuses(migrate(found, target, ["thread-1"])) == {"thread-1": Status.MOVED}
    assert stored_values(target.saver, thread_config()) == {"said": HumanMessage("hello", id="1")}


def test_a_serializer_of_ones_own_is_needed_on_both_sides() -> None:
    source, target = empty(serde=Own()), empty(serde=Own())
    store(source.saver, thread_config(), "1", {"said": HumanMessage("hello", id="1")})
    file = exported(source)
    assert statuses(migrate(FileEndpoint(file, target), target, ["thread-1"])) == {"thread-1": Status.MOVED}
    assert stored_values(target.saver, thread_config()) == {"said": HumanMessage("hello", id="1")}
    with pytest.raises(CheckpointerConfigurationError, match="serializer of its own, of type 'own'"):
        FileEndpoint(file, empty())


def test_what_is_deleted_while_it_is_exported_is_left_out() -> None:
    class Deleted(SaverEndpoint):
        def records(self, thread_id: str, refs: Any) -> Any:
            yield from (next(super().records(thread_id, refs)), None)

    source = Deleted(InMemorySaver())
    for name in ("1", "2"):
        store(source.saver, thread_config(), name, {"a": name})
    assert len(FileEndpoint(exported(source), empty()).refs("thread-1")) == 1


# What is no such file


def lines() -> list[bytes]:
    """The lines of a small file, with a piece."""
    source = empty()
    written = store(source.saver, thread_config(), "1", {"a": noise(20_000)})
    source.saver.put_writes(written, [("a", 1)], "task")
    return exported(source).getvalue().splitlines(keepends=True)


def joined(some: list[bytes]) -> io.BytesIO:
    """A file of lines."""
    return io.BytesIO(b"".join(some))


def changed(line: bytes, **changes: Any) -> bytes:
    """A line with other content; what is None is left out."""
    content = {**json.loads(line), **changes}
    return json.dumps({name: value for name, value in content.items() if value is not None}).encode() + b"\n"


def ended(some: list[bytes]) -> io.BytesIO:
    """A file of lines with the last line that goes with them."""
    digest = blake2b(b"".join(some), digest_size=32).hexdigest()
    return joined([*some, json.dumps({"end": digest}).encode() + b"\n"])


def test_a_file_that_is_cut_short_or_changed_is_refused() -> None:
    whole = lines()
    for count in range(len(whole)):
        with pytest.raises(CheckpointCorruptionError, match="cut short"):
            FileEndpoint(joined(whole[:count]), empty())
        with pytest.raises(CheckpointCorruptionError, match="cut short"):
            FileEndpoint(joined([*whole[:count], whole[count][:-1]]), empty())
    for damaged in (
        [*whole, b"more"],
        [whole[0], whole[2], whole[1], *whole[3:-1], whole[-1]],
        [changed(whole[0], thread_id="another"), *whole[1:]],
        [*whole[:-2], whole[-1]],
    ):
        with pytest.raises(CheckpointCorruptionError, match="was changed after"):
            FileEndpoint(joined(damaged), empty())


def test_a_file_of_a_newer_release_says_so() -> None:
    first, *rest = lines()
    with pytest.raises(CheckpointFormatError, match="version 2, and this release"):
        FileEndpoint(joined([changed(first, version=2), *rest]), empty())


NOTHING = {"type": "null", "data": ""}
WRITE = {"task": "t", "path": "", "position": 0, "channel": "a", "value": NOTHING}


@pytest.mark.parametrize(
    ("line", "content"),
    [
        (1, b"no JSON\n"),
        (1, b"\xff\n"),
        (1, b"[]\n"),
        (1, b'{"format": "another", "version": 1, "thread_id": "1"}\n'),
        (1, b'{"format": "langgraph-thread", "version": "1", "thread_id": "1"}\n'),
        (1, b'{"format": "langgraph-thread", "version": 1}\n'),
        (2, b'{"piece": "00", "data": "no base 64"}\n'),
        (2, b'{"piece": "00"}\n'),
        (2, b"7\n"),
        (2, b"[" * 100_000 + b"\n"),
        (-2, {"writes": None}),
        (-2, {"writes": [{**WRITE, "position": "0"}]}),
        (-2, {"writes": [{**WRITE, "position": 1e300}]}),
        (-2, {"writes": [{**WRITE, "position": True}]}),
        (-2, {"writes": [{**WRITE, "position": 2**63}]}),
        (-2, {"writes": [{**WRITE, "task": 7}]}),
        (-2, {"writes": [{**WRITE, "channel": "\ud800"}]}),
        (-2, {"parent": 7}),
        (-2, {"parent": None}),
        (-2, {"body": None}),
        (-2, {"values": {"a": {"type": "msgpack"}}}),
        (-2, {"values": {"a": {"data": ""}}}),
        (-2, {"values": {"a": {"type": "msgpack", "pieces": ["00"], "data": ""}}}),
        (-2, {"namespace": None}),
        (-2, {"checkpoint": None}),
    ],
)
def test_a_line_that_no_export_writes_is_named(line: int, content: Any) -> None:
    some = lines()[:-1]
    position = line - 1 if line > 0 else line + 1
    # What is None is left out, and the parent is None.
    some[position] = (
        changed(some[position], **{"parent": "0", **content}) if isinstance(content, dict) else content
    )
    with pytest.raises(CheckpointerInputError, match=r"line \d+ of the file is not what an export writes"):
        FileEndpoint(ended(some), empty())
