"""The sources of a configuration: YAML files, dicts and the environment; and mistakes in it, in words.

A message names the key and what may stand there, and never a value.
"""

from __future__ import annotations

import difflib
import os
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import yaml
from pydantic import BaseModel, ValidationError

from ..errors import CheckpointerConfigurationError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

Key: TypeAlias = tuple[str | int, ...]
# Says in words where a key stands.
Locate: TypeAlias = Callable[[Key], str]
# `${NAME}` and `${NAME:-default}` in a value; `$${` stands for `${`.
_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$\{)|\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|(?P<broken>\{))"
)
_ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True)
class Fault:
    """A mistake in the value of a key."""

    key: Key
    says: str


def dotted(key: Key) -> str:
    """Return a key with dots between its parts, which is where it stands in code."""
    return ".".join(map(str, key)) or "the configuration"


def configuration_error(faults: Sequence[Fault], locate: Locate) -> CheckpointerConfigurationError:
    """Return an error that lists all mistakes with their locations."""
    lines = [f"{locate(fault.key)}: {fault.says}" for fault in faults]
    if len(lines) == 1:
        return CheckpointerConfigurationError(lines[0])
    return CheckpointerConfigurationError("\n  ".join(["the configuration has several mistakes:", *lines]))


def faults_of(error: ValidationError, model: type[BaseModel], above: Key = ()) -> list[Fault]:
    """Translate pydantic's errors for a model's options below a key."""
    # The input may be a secret, so it is not even asked for.
    details = error.errors(include_url=False, include_input=False, include_context=False)
    return [_translated(each, model, above) for each in details]


def _translated(detail: ErrorDetails, model: type[BaseModel], above: Key) -> Fault:
    # A part in round brackets is a tag: the kind of a value that may be of several kinds.
    key = tuple(part for part in detail["loc"] if not str(part).startswith("("))
    *names, last = key or ("",)
    owner = _descend(model, names)
    field = owner.model_fields.get(str(last)) if owner else None
    whole = (*above, *key)
    if detail["type"] == "extra_forbidden" and owner:
        other_names: Mapping[str, str] = getattr(owner, "other_names", {})
        return Fault(whole, _unknown(str(last), owner.model_fields, other_names))
    if detail["type"] == "missing" and field:
        return Fault(whole, f"is missing: {_first_letter_lower(first_sentence(field.description))}")
    if detail["type"] == "model_type":
        return Fault(whole, "must be a mapping of names to values")
    says = detail["msg"].removeprefix("Value error, ")
    return Fault(
        whole, _first_letter_lower(says) + (f" ({first_sentence(field.description)})" if field else "")
    )


def first_sentence(text: str | None) -> str:
    """Return the first sentence of an option's text, which says what the option is."""
    return re.split(r"(?<=\.) (?=[A-Z`])", str(text))[0]


def _descend(model: type[BaseModel], names: Sequence[str | int]) -> type[BaseModel] | None:
    """Find the model that a path of names leads to."""
    found: type[BaseModel] | None = model
    for name in names:
        field: FieldInfo | None = found.model_fields.get(str(name)) if found else None
        found = next(_models(field.annotation), None) if field else None
    return found


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    # In Python 3.10, `list[str]` also counts as a class.
    if (
        typing.get_origin(annotation) is None
        and isinstance(annotation, type)
        and issubclass(annotation, BaseModel)
    ):
        yield annotation
    for each in typing.get_args(annotation):
        yield from _models(each)


def _unknown(name: str, known: Iterable[str], other_names: Mapping[str, str]) -> str:
    names = list(known)
    if name in other_names:
        return f"is unknown here; {other_names[name]}"
    remedy = f"use one of {', '.join(names)}" if names else "this type has no options"
    return f"is unknown here; {did_you_mean(name, names)}{remedy}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a question about the name that is most like a mistyped one, or nothing."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {close[0]}? " if close else ""


def _first_letter_lower(text: str) -> str:
    return text[:1].lower() + text[1:]


@dataclass(frozen=True)
class Variables:
    """Fills in variables, and collects mistakes in references to them."""

    variables: Mapping[str, str]
    faults: list[Fault] = field(default_factory=list)

    def fill(self, value: Any, key: Key = ()) -> Any:
        """Return a value with its variables filled in, at any depth."""
        if isinstance(value, str):
            return _VARIABLE.sub(lambda match: self._text(match, key), value)
        if isinstance(value, Mapping):
            return {name: self.fill(each, (*key, name)) for name, each in value.items()}
        if isinstance(value, list):
            return [self.fill(each, (*key, number)) for number, each in enumerate(value)]
        return value

    def _text(self, match: re.Match[str], key: Key) -> str:
        if match["escaped"]:
            return "${"
        if match["broken"]:
            says = (
                "has a `${` that does not begin a variable; write ${NAME} or ${NAME:-default}, or $${ for the"
                " text ${"
            )
            self.faults.append(Fault(key, says))
            return ""
        # As in a shell, the default also replaces an empty variable.
        text = self.variables.get(match["name"])
        if match["default"] is not None:
            return text or match["default"]
        if text is None:
            says = f"needs the environment variable {match['name']}, which is not set; set it, or write a default as "
            self.faults.append(Fault(key, says + f"${{{match['name']}:-default}}"))
        return text or ""


@dataclass(frozen=True)
class Subject:
    """A configurable subject.

    Args:
        name: Its key in a file.
        foreign_prefixes: Prefixes of variables that begin like its own, and that LangGraph's Agent Server reads.
        is_required: Whether it is an error if nothing is configured.
    """

    name: str
    foreign_prefixes: tuple[str, ...] = ()
    is_required: bool = True

    @property
    def prefix(self) -> str:
        """The prefix of its variables."""
        return f"LANGGRAPH_{self.name.upper()}_"

    @property
    def hint(self) -> str:
        """The remedy if nothing is configured."""
        return f"say which type of {self.name} it is, such as `memory` or `dynamodb`"

    def misspelled(self, names: Iterable[object]) -> str:
        """Return a question about the first of some keys that may be meant for this one, or nothing."""
        near = (each for each in names if isinstance(each, str) and did_you_mean(each, [self.name]))
        return next((f"did you mean it by `{each}:`? Otherwise " for each in near), "")

    def variable(self, key: Key) -> str:
        """Return the name of a key's variable, in words."""
        name = self.prefix + "__".join(str(part).upper() for part in key)
        return f"environment variable {name}" if key else f"the environment's {name}*"


CHECKPOINTER = Subject("checkpointer", ("LANGGRAPH_CHECKPOINTER_POSTGRES_",))
STORE = Subject("store", ("LANGGRAPH_STORE_BACKEND",))
CACHE = Subject("cache")


@dataclass(frozen=True)
class Section:
    """The unchecked content of a source about a subject, and what says where its keys stand."""

    content: Any
    locate: Locate


def read(source: object, subject: Subject) -> Section:
    """Read a file, a dict, or, if the source is None, the environment."""
    if source is None:
        return _read_environment(os.environ, subject)
    if isinstance(source, Mapping):
        near = subject.misspelled(source)
        if near and subject.name not in source:
            _refuse(f"there is no `{subject.name}` in the configuration; {near}{subject.hint}")
        return Section(source.get(subject.name, source), dotted)
    if isinstance(source, (str, os.PathLike)):
        return _read_file(Path(source), subject)
    raise CheckpointerConfigurationError(
        f"a {subject.name} cannot be configured by a {type(source).__name__}; "
        f"give a {subject.name.capitalize()}Config, a dict, the path of a YAML file, or nothing for the environment"
    )


# YAML


def _read_file(path: Path, subject: Subject) -> Section:
    if path.suffix.lower() not in _ENDINGS:
        _refuse(f"{path}: the name of a configuration file ends in {' or '.join(_ENDINGS)}")
    try:
        return _read_yaml(str(path), path.read_text(encoding="utf-8-sig"), subject)
    except FileNotFoundError:
        _refuse(f"{path}: there is no such file")
    except OSError as error:
        _refuse(f"{path}: {error.strerror}")
    except UnicodeDecodeError:
        _refuse(f"{path}: a configuration is text in UTF-8")
    except RecursionError:
        _refuse(f"{path}: lists or mappings in it are nested too deeply")


class StrictLoader(yaml.SafeLoader):
    """Refuses a key that occurs twice in a mapping, one of which YAML's own loader would silently drop."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Make a dict of a mapping; raise if it has a key twice."""
        names = [name.value for name, _ in node.value]
        for at, (name, _) in enumerate(node.value):
            if name.value in names[:at]:
                raise yaml.constructor.ConstructorError(
                    None, None, "a key is there twice; remove one of them", name.start_mark
                )
        return super().construct_mapping(node, deep)


def _read_yaml(name: str, text: str, subject: Subject) -> Section:
    loader = StrictLoader("")
    try:
        # An empty file has no tree.
        root = yaml.compose(text, Loader=yaml.SafeLoader) or yaml.ScalarNode("", "")
        found = _section_node(root, name, subject)
        # Only this part becomes objects: other parts of the file may have custom tags. All of it does at once, so that
        # a list that contains itself is refused.
        content = {} if found is None else loader.construct_object(found, deep=True)
        return Section(content, lambda key: f"{name}, {dotted((subject.name, *key))}")
    except yaml.MarkedYAMLError as error:
        _refuse(f"{name}{_what_is_no_yaml(error, text)}")
    except yaml.YAMLError:
        _refuse(f"{name}: this is not YAML: it has a character that YAML does not allow")
    except ValueError:
        _refuse(
            f"{name}: a date or number under `{subject.name}:` is not valid; put it in quotes if it is text"
        )
    finally:
        loader.dispose()


def _section_node(root: yaml.Node, name: str, subject: Subject) -> yaml.Node | None:
    pairs: list[tuple[yaml.Node, yaml.Node]] = root.value if isinstance(root, yaml.MappingNode) else []
    found = [(key.start_mark.line + 1, value) for key, value in pairs if key.value == subject.name]
    if not found and subject.is_required:
        near = subject.misspelled(key.value for key, _ in pairs)
        _refuse(f"{name}: there is no `{subject.name}:` in it; {near}{subject.hint}")
    if len(found) > 1:
        _refuse(f"{name}, line {found[1][0]}: `{subject.name}:` is there twice; remove one of them")
    return found[0][1] if found else None


def _what_is_no_yaml(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return the parser's message without the words that it quotes: they may be parts of a secret."""
    number = error.problem_mark.line if error.problem_mark else 0
    says = re.sub(
        r"'([^']*)'",
        lambda found: found[0] if not re.search(r"\w", found[1]) else "'...'",
        error.problem or "",
    )
    line = "".join(text.splitlines()[number : number + 1])
    hint = "; put values with ${...} in quotes" if "${" in line else ""
    if "\\t" in str(error.problem):
        says, hint = "it has a tab", "; use spaces"
    return f", line {number + 1}: this is not YAML: {says}{hint}"


# The environment


def _read_environment(variables: Mapping[str, str], subject: Subject) -> Section:
    content: dict[str, Any] = {}
    for name in sorted(variables):
        if name.startswith(subject.prefix) and not name.startswith(subject.foreign_prefixes):
            key = tuple(name.removeprefix(subject.prefix).lower().split("__"))
            if not _put(content, key, variables[name]):
                says = "is set, and so is a variable whose name is the same or a part of it; leave one of the two"
                raise configuration_error([Fault(key, says)], subject.variable)
    if not content and subject.is_required:
        _refuse(
            f"no configuration was given, and {subject.prefix}TYPE is not set in the environment; {subject.hint}, "
            f"with options as {subject.prefix}CONFIG__TABLE_NAME"
        )
    return Section(content, subject.variable)


def _put(content: dict[str, Any], key: tuple[str, ...], text: str) -> bool:
    """Store a variable's text at its key. Return False if another variable has a text there."""
    inner: Any = content
    for part in key[:-1]:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            return False
    if key[-1] in inner:
        return False
    inner[key[-1]] = text
    return True


def _refuse(says: str) -> NoReturn:
    raise CheckpointerConfigurationError(says) from None
