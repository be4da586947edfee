"""Locations of a configuration's parts, for error messages."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Key = tuple[str | int, ...]


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        ValueError: The text is not TOML; the message says why.
    """
    return tomllib.loads(text)


class SourceLocation:
    """The origin of a configuration. This class itself stands for code."""

    def __eq__(self, other: object) -> bool:
        """Treat all locations as equal, so that configurations with the same content are equal."""
        return isinstance(other, SourceLocation)

    def of(self, key: Key) -> str:
        """Return the location of a key's value, in words."""
        return _dotted(key) or "the configuration"


@dataclass(frozen=True, eq=False)
class Environment(SourceLocation):
    """The environment of the process, where a key is a variable.

    Args:
        prefix: The prefix of the variables.
        foreign_prefixes: Longer prefixes, of variables that LangGraph's Agent Server reads.
    """

    prefix: str
    foreign_prefixes: tuple[str, ...] = ()

    def of(self, key: Key) -> str:
        """Return the name of the variable, in words."""
        name = self.prefix + "__".join(str(part).upper() for part in key)
        return f"environment variable {name}" if key else f"the environment's {name}*"


@dataclass(frozen=True, eq=False)
class File(SourceLocation):
    """A file.

    Args:
        name: The file's name.
        above: The keys that lead to the configuration in it.
        line_of: Returns the line of a key. A missing key is located where it would have to be. `None` for TOML, whose
            parser has no line numbers.
    """

    name: str
    above: Key
    line_of: Callable[[Key], int] | None = None

    def of(self, key: Key) -> str:
        """Return the file, the key, and the line if it is known."""
        whole = (*self.above, *key)
        line = "" if self.line_of is None else f", line {self.line_of(whole)}"
        return f"{self.name}{line}, {_dotted(whole)}"


def yaml_line(root: yaml.Node, key: Key) -> int:
    """Return the line of a key in YAML, whose nodes have line numbers."""
    node, line = root, root.start_mark.line
    for part in key:
        found = _child(node, part)
        if found is None:
            break
        node, line = found
    return line + 1


def _dotted(key: Key) -> str:
    return ".".join(str(part) for part in key)


def _child(node: yaml.Node, part: str | int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part].start_mark.line
    if isinstance(node, yaml.MappingNode):
        # Merged entries come before the mapping's own.
        for name, value in reversed(node.value):
            if name.value == str(part):
                return value, name.start_mark.line
    return None
