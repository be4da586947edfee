"""Mistakes in a configuration, in words that name the key and what may stand there, and never a value."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel, ValidationError

from ..errors import CheckpointerConfigurationError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails


Key: TypeAlias = "tuple[str | int, ...]"
# Says in words where a key stands.
Locate: TypeAlias = "Callable[[Key], str]"


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
