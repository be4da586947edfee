"""A value in a document: plain data, in parts if it is large."""

from __future__ import annotations

from typing import Literal

from typing_extensions import NotRequired, TypedDict


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
