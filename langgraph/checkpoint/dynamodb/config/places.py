"""Where a part of a configuration stands, so that an error can say so."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Key = tuple[str | int, ...]


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; a `ValueError` says what is wrong with it."""
    return tomllib.loads(text)


class Place:
    """What a configuration was read from: code, where nothing else is said."""

    def __eq__(self, other: object) -> bool:
        """Take all places for equal: two configurations that say the same are equal, wherever they stand."""
        return isinstance(other, Place)

    def of(self, key: Key) -> str:
        """Say where the value of a key stands."""
        return _dotted(key) or "the checkpointer's configuration"


class Environment(Place):
    """The environment of the process, where a key is a variable."""

    prefix = "LANGGRAPH_CHECKPOINTER_"
    # LangGraph's Agent Server reads these, which it names in the same way.
    foreign_prefixes: tuple[str, ...] = ("LANGGRAPH_CHECKPOINTER_POSTGRES_",)

    def of(self, key: Key) -> str:
        """Name the variable."""
        name = self.prefix + "__".join(str(part).upper() for part in key)
        return f"environment variable {name}" if key else f"the environment's {name}*"


@dataclass(frozen=True, eq=False)
class YamlFile(Place):
    """A YAML file, whose tree knows its lines."""

    name: str
    root: yaml.Node
    above: Key

    def of(self, key: Key) -> str:
        """Name the file, the line and the key; a key that is not there stands where it would have to."""
        return f"{self.name}, line {self._line(key)}, {_dotted((*self.above, *key))}"

    def _line(self, key: Key) -> int:
        node, line = self.root, self.root.start_mark.line
        for part in (*self.above, *key):
            found = _child(node, part)
            if found is None:
                break
            node, line = found
        return line + 1


@dataclass(frozen=True, eq=False)
class TomlFile(Place):
    """A TOML file, whose parser tells no lines."""

    name: str
    text: str
    above: Key

    def of(self, key: Key) -> str:
        """Name the file, the line and the key; a key that is not there stands where it would have to."""
        whole = (*self.above, *key)
        return f"{self.name}, line {self._line(whole)}, {_dotted(whole)}"

    def _line(self, key: Key) -> int:
        for length in range(len(key), 0, -1):
            line = _first_line_with(self.text.splitlines(), key[:length])
            if line:
                return line
        return 1


def _dotted(key: Key) -> str:
    return ".".join(str(part) for part in key)


def _child(node: yaml.Node, part: str | int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part].start_mark.line
    if isinstance(node, yaml.MappingNode):
        # What is merged from elsewhere stands before what the mapping says itself.
        for name, value in reversed(node.value):
            if name.value == str(part):
                return value, name.start_mark.line
    return None


def _first_line_with(lines: list[str], key: Key) -> int | None:
    """Find the line that brings the key: the file up to it, or up to where its value ends, has it."""
    for number, line in enumerate(lines, 1):
        if str(key[-1]) in line and _has(_beginning(lines, number), key):
            return number
    return None


def _beginning(lines: list[str], number: int) -> dict[str, Any]:
    """Parse the lines up to one, and as many more as its value goes on."""
    longer = (_parsed("\n".join(lines[:end])) for end in range(number, len(lines) + 1))
    # The file as a whole has been parsed before.
    return next(content for content in longer if content is not None)


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return parse_toml(text)
    except ValueError:
        return None


def _has(content: Any, key: Key) -> bool:
    for part in key:
        if not isinstance(content, dict) or part not in content:
            return False
        content = content[part]
    return True
