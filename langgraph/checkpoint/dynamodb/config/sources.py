"""The sources of a configuration: YAML and TOML files, dicts, and the environment of the process."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import yaml

from langgraph.checkpoint.dynamodb.config.faults import Fault, configuration_error
from langgraph.checkpoint.dynamodb.config.source_locations import (
    Environment,
    File,
    SourceLocation,
    parse_toml,
    yaml_line,
)
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError


@dataclass(frozen=True)
class Subject:
    """A configurable subject, with its names in each kind of source.

    Args:
        in_yaml: The key of a YAML file.
        in_toml: The table of a TOML file.
        environment: The environment, with the prefix of the variables.
        is_required: Whether it is an error if nothing is configured.
    """

    in_yaml: str
    in_toml: tuple[str, ...]
    environment: Environment
    is_required: bool = True

    @property
    def hint(self) -> str:
        """The remedy if nothing is configured."""
        return f"say which type of {self.in_yaml} it is, such as `memory` or `dynamodb`"


CHECKPOINTER = Subject(
    "checkpointer",
    ("tool", "langgraph-dynamodb"),
    Environment("LANGGRAPH_CHECKPOINTER_", ("LANGGRAPH_CHECKPOINTER_POSTGRES_",)),
)
STORE = Subject(
    "store",
    ("tool", "langgraph-dynamodb-store"),
    Environment("LANGGRAPH_STORE_", ("LANGGRAPH_STORE_BACKEND",)),
)
CACHE = Subject("cache", ("tool", "langgraph-dynamodb-cache"), Environment("LANGGRAPH_CACHE_"))


@dataclass(frozen=True)
class Section:
    """The unchecked content of a source about a subject, with its location."""

    content: Any
    location: SourceLocation


def read(source: object, subject: Subject) -> Section:
    """Read a file, a dict, or, if the source is None, the environment."""
    if source is None:
        return _read_environment(os.environ, subject)
    if isinstance(source, Mapping):
        return Section(source.get(subject.in_yaml, source), SourceLocation())
    if isinstance(source, (str, os.PathLike)):
        return _read_file(Path(source), subject)
    msg = (
        f"a {subject.in_yaml} cannot be configured by a {type(source).__name__}; "
        f"give a {subject.in_yaml.capitalize()}Config, a dict, the path of a YAML or TOML file, or nothing for the"
        " environment"
    )
    raise CheckpointerConfigurationError(msg)


def _read_file(path: Path, subject: Subject) -> Section:
    readers = {".yaml": _read_yaml, ".yml": _read_yaml, ".toml": _read_toml}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        _refuse(f"{path}: the name of a configuration file ends in {' or '.join(readers)}")
    try:
        return reader(str(path), path.read_text(encoding="utf-8-sig"), subject)
    except FileNotFoundError:
        _refuse(f"{path}: there is no such file")
    except OSError as error:
        _refuse(f"{path}: {error.strerror}")
    except UnicodeDecodeError:
        _refuse(f"{path}: a configuration is text in UTF-8")
    except RecursionError:
        _refuse(f"{path}: lists or mappings in it are nested too deeply")


# YAML


def _read_yaml(name: str, text: str, subject: Subject) -> Section:
    loader = yaml.SafeLoader("")
    try:
        # An empty file has no tree.
        root = yaml.compose(text, Loader=yaml.SafeLoader) or yaml.ScalarNode("", "")
        found = _section_node(root, name, subject)
        location = File(name, (subject.in_yaml,), partial(yaml_line, root))
        if found is None:
            return Section({}, location)
        faults = _twice(found, (), ())
        if faults:
            raise configuration_error(faults, location)
        # Only this part becomes objects: other parts of the file may have custom tags.
        return Section(loader.construct_document(found), location)
    except yaml.MarkedYAMLError as error:
        _refuse(f"{name}{_what_is_no_yaml(error, text)}")
    except yaml.YAMLError:
        _refuse(f"{name}: this is not YAML: it has a character that YAML does not allow")
    except ValueError:
        _refuse(
            f"{name}: a date or number under `{subject.in_yaml}:` is not valid; put it in quotes if it is text"
        )
    finally:
        loader.dispose()


def _section_node(root: yaml.Node, name: str, subject: Subject) -> yaml.Node | None:
    pairs: list[tuple[yaml.Node, yaml.Node]] = root.value if isinstance(root, yaml.MappingNode) else []
    found = [(key.start_mark.line + 1, value) for key, value in pairs if key.value == subject.in_yaml]
    if not found and subject.is_required:
        _refuse(f"{name}: there is no `{subject.in_yaml}:` in it; {subject.hint}")
    if len(found) > 1:
        _refuse(f"{name}, line {found[1][0]}: `{subject.in_yaml}:` is there twice; remove one of them")
    return found[0][1] if found else None


def _twice(node: yaml.Node, key: tuple[str | int, ...], above: tuple[yaml.Node, ...]) -> list[Fault]:
    """Return the keys that occur twice in a mapping. YAML's parser would silently drop one of them."""
    if node in above:
        return [Fault(key, "refers to itself")]
    children: list[tuple[Any, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        children = [(name.value, value) for name, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        children = list(enumerate(node.value))
    # A key may be a list, too.
    counts = Counter(str(part) for part, _ in children)
    faults = [
        Fault((*key, part), "is there twice; remove one of them")
        for part, count in counts.items()
        if count > 1
    ]
    for part, child in children:
        faults += _twice(child, (*key, part), (*above, node))
    return faults


def _what_is_no_yaml(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return the parser's message without the words that it quotes: they may be parts of a secret."""
    number = error.problem_mark.line if error.problem_mark else 0
    says = re.sub(
        r"'([^']*)'",
        lambda found: found[0] if not re.search(r"\w", found[1]) else "'...'",
        error.problem or "",
    )
    hint = (
        "; put values with ${...} in quotes"
        if "${" in "".join(text.splitlines()[number : number + 1])
        else ""
    )
    return f", line {number + 1}: this is not YAML: {says}{hint}"


# TOML


def _read_toml(name: str, text: str, subject: Subject) -> Section:
    try:
        content: Any = parse_toml(text)
    except ValueError as error:
        _refuse(f"{name}: this is not TOML: {error}")
    for part in subject.in_toml:
        content = content.get(part) if isinstance(content, dict) else None
    if content is None and subject.is_required:
        _refuse(f"{name}: there is no [{'.'.join(subject.in_toml)}] in it; {subject.hint}")
    return Section({} if content is None else content, File(name, subject.in_toml))


# The environment


def _read_environment(variables: Mapping[str, str], subject: Subject) -> Section:
    prefix = subject.environment.prefix
    content: dict[str, Any] = {}
    names: dict[tuple[str, ...], str] = {}
    for name in sorted(variables):
        if name.startswith(prefix) and not name.startswith(subject.environment.foreign_prefixes):
            key = tuple(name[len(prefix) :].lower().split("__"))
            if names.setdefault(key, name) != name:
                _refuse(
                    f"the environment variables {names[key]} and {name} set the same option; remove one of them"
                )
    for key, name in sorted(names.items()):
        if not _put(content, key, variables[name]):
            says = "is set, and so is a variable whose name is a part of it; leave one of the two"
            raise configuration_error([Fault(key, says)], subject.environment)
    if not content and subject.is_required:
        _refuse(
            f"no configuration was given, and {prefix}TYPE is not set in the environment; {subject.hint}, "
            f"with options as {prefix}CONFIG__TABLE_NAME"
        )
    return Section(content, subject.environment)


def _put(content: dict[str, Any], key: tuple[str, ...], text: str) -> bool:
    """Store a variable's text at its key. Return False if another variable has a text there."""
    inner: Any = content
    for part in key[:-1]:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            return False
    inner[key[-1]] = text
    return True


def _refuse(says: str) -> NoReturn:
    raise CheckpointerConfigurationError(says) from None
