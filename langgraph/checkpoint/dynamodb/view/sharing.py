"""The nodes of an export: each value once, however many checkpoints have it, and masked."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, cast

from langgraph.checkpoint.dynamodb._format.inert import Stored
from langgraph.checkpoint.dynamodb.view.masks import Masks, Rule
from langgraph.checkpoint.dynamodb.view.node import Node, Usage
from langgraph.checkpoint.dynamodb.view.nodes import Keys, Shower, part_of
from langgraph.checkpoint.dynamodb.view.plain import BYTES, LISTS, fingerprint, inside

# A value no longer than a reference is written in place.
_SHARED_CHARACTERS_MIN = 24
# Well within Python's stack.
_DEPTH_MAX = 60
# The fields of a message, by their names in a node.
_FIELDS = {
    "role": "type",
    "name": "name",
    "id": "id",
    "result_of": "tool_call_id",
    "status": "status",
    "usage": "usage_metadata",
    "model": "response_metadata",
    "calls": "tool_calls",
}


class SharingShower(Shower):
    """Makes nodes that refer to one list of shared values."""

    def __init__(self, masks: Masks, cut_bytes: int) -> None:
        """Store the masks, and how long a text may be. Nothing else is cut."""
        self.masks = masks
        self.shared: list[Node] = []
        """The nodes that references point to."""
        self._places: dict[tuple[bytes, Keys], int] = {}
        super().__init__(
            text_max=cut_bytes,
            parts_max=sys.maxsize,
            depth_max=_DEPTH_MAX,
            nodes_max=sys.maxsize,
            characters_max=sys.maxsize,
        )

    def node(self, value: Any, keys: Keys = (), *, start: int = 0, depth: int = 0) -> Node:
        """Return the node of a value, or a reference to it. `start` is ignored."""
        del start
        rule = self.masks.at(keys)
        if rule is not None:
            return self._hidden(value, rule)
        if not _is_shared(value):
            return self._unshared(value, keys, depth)
        # With rules for paths, a value's parts are masked depending on the path to it.
        place = (fingerprint(value), keys if self.masks.paths else ())
        if place not in self._places:
            node = super().node(value, keys, depth=depth)
            self._places[place] = len(self.shared)
            self.shared.append(node)
        return cast("Node", {"$": self._places[place]})

    def _unshared(self, value: Any, keys: Keys, depth: int) -> Node:
        node = super().node(value, keys, depth=depth)
        if node["kind"] in ("number", "boolean"):
            node["text"], rule = self.masks.text(node["text"])
            if rule is not None:
                return _mark(rule)
        return node

    def _hidden(self, value: Any, rule: Rule) -> Node:
        """Return the node that replaces a hidden value. A masked value keeps its shape."""
        self.masks.count(rule)
        if rule.action == "left out":
            return _mark(rule)
        node = _mark(rule)
        value = inside(value)
        if isinstance(value, (str, *BYTES)):
            node["bytes"] = len(value)
        elif isinstance(value, Mapping):
            node = Node(
                kind="object", bytes=0, masked=rule.name, entries=[], start=0, end=0, length=len(value)
            )
        elif isinstance(value, LISTS):
            node = Node(kind="list", bytes=0, masked=rule.name, items=[], start=0, end=0, length=len(value))
        return node

    def _message(self, value: Any, fields: Mapping[str, Any], keys: Keys, depth: int) -> Node:
        node = super()._message(value, fields, keys, depth)
        for name, key in _FIELDS.items():
            rule = self.masks.at((*keys, key))
            if rule is not None:
                self.masks.count(rule)
                node["masked"] = rule.name
                _take_out(node, name, rule)
        return node

    def _text(self, value: str, start: int) -> Node:
        shown, rule = self.masks.text(value)
        node = super()._text(shown, start)
        if rule is not None:
            node["masked"] = rule.name
        return node

    def _bytes(self, value: bytes, start: int) -> Node:
        rule = self.masks.finds(value)
        if rule is None:
            return super()._bytes(value, start)
        self.masks.count(rule)
        return _mark(rule)


def _take_out(node: Node, name: str, rule: Rule) -> None:
    if name == "calls":
        node["calls"] = []
    elif name == "usage":
        node["usage"] = Usage(input=None, output=None, total=None)
    else:
        cast("dict[str, Any]", node)[name] = rule.mark


def _is_shared(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) >= _SHARED_CHARACTERS_MIN
    return isinstance(value, (Stored, Mapping, *BYTES, *LISTS)) and bool(value)


def _mark(rule: Rule) -> Node:
    node = Node(kind="text", bytes=0, text=rule.mark, masked=rule.name)
    return part_of(node, 0, len(rule.mark), len(rule.mark))
