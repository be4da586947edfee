"""Values as the page shows them: nodes of plain data, bounded in number and in text per document."""

from __future__ import annotations

import base64
import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeVar

from typing_extensions import NotRequired, TypedDict

from .._format.inert import Stored, labelled
from .stored_values import BYTES, LISTS, inside, message_fields, number_text, size_bytes

T = TypeVar("T")
# The bounds of one document's values. The page requests more if it needs it.
TEXT_MAX = 16 * 1024
PARTS_MAX = 200
_DEPTH_MAX = 12
NODES_MAX = 10_000
CHARACTERS_MAX = 512 * 1024
# The fields of a message that have a field of their own in a node.
_OWN_FIELDS = ("type", "role", "name", "content", "tool_call_id", "status", "usage_metadata")
_NOTHING: Sequence[Any] = (None, "", [], {})


class Entry(TypedDict):
    """One entry of an object."""

    key: str
    """The step of a path that leads to it."""
    node: Node


class ToolCall(TypedDict):
    """A tool that a message calls."""

    id: str | None
    name: str
    args: Node
    """Its path is that of the message, `"tool_calls"`, the place in `Node.calls`, `"args"`."""


class Usage(TypedDict):
    """The tokens that a message took, as texts of numbers. None if the model did not say."""

    input: str | None
    output: str | None


class Node(TypedDict):
    """A value as plain data.

    | kind | what it has |
    |---|---|
    | null | nothing more |
    | boolean, number | `text`: true, -1.5e300, NaN, or a whole number of any length |
    | text | `text`, the characters from `start` to `end` of `length`, counted as code points |
    | masked | `type`: what it is; the value was left out of a file |
    | bytes | `text` in base 64, the bytes from `start` to `end` of `length` |
    | list | `items`, those from `start` to `end` of `length` |
    | object | `entries`, those from `start` to `end` of `length` |
    | instance | `type`, the name of a class, and `value`: what it would be made from, whose steps are its own |
    | message | `role`, `name`, `content`, `calls`, `result_of`, `status`, `usage`, and other `entries` |

    What lies too deep has no parts at all, or no `value`, and is `cut`.
    """

    kind: Literal[
        "null", "boolean", "number", "text", "masked", "bytes", "list", "object", "instance", "message"
    ]
    bytes: int
    """Its approximate size, all of it: texts in UTF-8, bytes, and one byte for everything else."""
    cut: NotRequired[bool]
    """Whether the document leaves out a part of it. `api/part` returns more, from `end` on."""
    text: NotRequired[str]
    start: NotRequired[int]
    end: NotRequired[int]
    length: NotRequired[int]
    items: NotRequired[list[Node]]
    entries: NotRequired[list[Entry]]
    type: NotRequired[str]
    value: NotRequired[Node]
    role: NotRequired[str]
    """human, ai, tool, system, or any other role in the message."""
    name: NotRequired[str | None]
    content: NotRequired[Node]
    calls: NotRequired[list[ToolCall]]
    result_of: NotRequired[str | None]
    """The id of the call that this is the result of."""
    status: NotRequired[str | None]
    usage: NotRequired[Usage]


@dataclass
class Room:
    """The bounds of a document, as far as its values have left them."""

    nodes: int = NODES_MAX
    characters: int = CHARACTERS_MAX


class Shower:
    """Makes the nodes of one document."""

    def __init__(
        self,
        room: Room | None = None,
        *,
        text_max: int = TEXT_MAX,
        parts_max: int = PARTS_MAX,
        shows: Collection[str] | None = None,
    ) -> None:
        """Set the document's bounds, how many characters one text may have, and how many parts one list or object.

        Of other channels than `shows`, and of what is in no channel, only types, names and sizes are shown.
        """
        self._left = room or Room()
        self._text_max = text_max
        self._parts_max = parts_max
        self._shows = shows
        self._masks = shows is not None

    def of(self, channel: str) -> Shower:
        """Return what shows the values of a channel, in what room is left."""
        shower = copy.copy(self)
        shower._masks = self._shows is not None and channel not in self._shows  # noqa: SLF001 - its own class.
        return shower

    def node(self, value: Any, *, start: int = 0, depth: int = 0) -> Node:
        """Return the node of a value.

        Args:
            value: The value.
            start: The first of its characters, bytes, items or entries to show.
            depth: How deep it is nested in what the document shows.
        """
        self._left.nodes -= 1
        # A message shows its content in any case, so one that is too deep is cut as the object that it is.
        fields = message_fields(value) if depth < _DEPTH_MAX else None
        if fields is not None:
            return self._message(value, fields, depth)
        if isinstance(value, Stored):
            return self._instance(value, start, depth)
        if self._masks and not isinstance(value, (Mapping, *LISTS)):
            return Node(kind="masked", bytes=size_bytes(value), type=_type_name(value))
        if isinstance(value, str):
            return self._text(value, start)
        if isinstance(value, BYTES):
            return self._bytes(bytes(value), start)
        if isinstance(value, Mapping):
            return self._object(value, start, depth)
        if isinstance(value, LISTS):
            return self._list(value, start, depth)
        return _scalar(value)

    def _text(self, value: str, start: int) -> Node:
        shown = value[start : start + self._room()]
        self._left.characters -= len(shown)
        return part_of(Node(kind="text", bytes=size_bytes(value), text=shown), start, len(shown), len(value))

    def _bytes(self, value: bytes, start: int) -> Node:
        shown = value[start : start + self._room() // 4 * 3]
        self._left.characters -= len(shown) * 4 // 3
        text = base64.b64encode(shown).decode()
        return part_of(Node(kind="bytes", bytes=len(value), text=text), start, len(shown), len(value))

    def _room(self) -> int:
        return max(0, min(self._text_max, self._left.characters))

    def _shown(self, parts: Iterable[T], start: int, depth: int) -> list[T]:
        """Return those parts of a list or object that there is room for."""
        room = min(self._parts_max, self._left.nodes) if depth < _DEPTH_MAX else 0
        return list(islice(parts, start, start + max(0, room)))

    def _object(self, value: Mapping[Any, Any], start: int, depth: int) -> Node:
        entries = labelled(value)
        shown = [self._entry(*each, depth) for each in self._shown(entries.items(), start, depth)]
        node = Node(kind="object", bytes=size_bytes(value), entries=shown)
        return part_of(node, start, len(shown), len(entries))

    def _entry(self, key: str, value: Any, depth: int) -> Entry:
        return Entry(key=key, node=self.node(value, depth=depth + 1))

    def _list(self, value: Collection[Any], start: int, depth: int) -> Node:
        shown = [self.node(each, depth=depth + 1) for each in self._shown(value, start, depth)]
        node = Node(kind="list", bytes=size_bytes(value), items=shown)
        return part_of(node, start, len(shown), len(value))

    def _instance(self, value: Stored, start: int, depth: int) -> Node:
        if depth >= _DEPTH_MAX:
            return _cut(Node(kind="instance", bytes=size_bytes(value), type=value.kind), is_cut=True)
        content = self.node(value.content, start=start, depth=depth + 1)
        return Node(kind="instance", bytes=size_bytes(value.content), type=value.kind, value=content)

    def _message(self, value: Any, fields: Mapping[str, Any], depth: int) -> Node:
        calls = _calls(value, fields)
        others = {
            key: each
            for key, each in labelled(fields).items()
            if key not in _OWN_FIELDS and each not in _NOTHING and not (key == "tool_calls" and calls)
        }
        shown = self._shown(others.items(), 0, depth)
        node = Node(
            kind="message",
            bytes=size_bytes(fields),
            role=str(fields.get("role", fields.get("type", "message"))),
            name=_text_of(fields.get("name")),
            content=self.node(fields.get("content"), depth=depth + 1),
            calls=[
                ToolCall(
                    id=_text_of(each.get("id")),
                    name=str(each.get("name")),
                    args=self.node(each.get("args"), depth=depth + 2),
                )
                for each in calls
            ],
            result_of=_text_of(fields.get("tool_call_id")),
            status=_text_of(fields.get("status")),
            usage=_usage(fields),
            entries=[self._entry(*each, depth) for each in shown],
        )
        return _cut(node, is_cut=len(shown) < len(others))


def part_of(node: Node, start: int, count: int, length: int) -> Node:
    """Record in a node which part of its value it shows."""
    node["start"], node["end"], node["length"] = start, start + count, length
    return _cut(node, is_cut=start + count < length)


def _cut(node: Node, *, is_cut: bool) -> Node:
    if is_cut:
        node["cut"] = True
    return node


def _scalar(value: Any) -> Node:
    if value is None:
        return Node(kind="null", bytes=1)
    if isinstance(value, bool):
        return Node(kind="boolean", bytes=1, text="true" if value else "false")
    if isinstance(value, (int, float)):
        return Node(kind="number", bytes=size_bytes(value), text=number_text(value))
    # A custom serializer may return anything.
    return Node(kind="instance", bytes=1, type=type(value).__name__, value=Node(kind="null", bytes=1))


def _type_name(value: Any) -> str:
    kinds = {str: "text", bool: "boolean", int: "number", float: "number", type(None): "null"}
    return "bytes" if isinstance(value, BYTES) else kinds.get(type(value), type(value).__name__)


def _text_of(value: Any) -> str | None:
    return None if value is None else str(inside(value))


def _calls(value: Any, fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tools that a message calls. Calls in another form than LangChain's stay among the entries."""
    calls = fields.get("tool_calls") if isinstance(value, Stored) else None
    return list(calls) if isinstance(calls, list) and all(isinstance(each, Mapping) for each in calls) else []


def _usage(fields: Mapping[str, Any]) -> Usage:
    used = inside(fields.get("usage_metadata"))
    counts = used if isinstance(used, Mapping) else {}
    return Usage(input=_text_of(counts.get("input_tokens")), output=_text_of(counts.get("output_tokens")))
