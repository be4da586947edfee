"""Kinds of options that types share: numbers, and objects that a file names as `module:name`."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from .._format.limits import TTL_SECONDS_MAX
from .types import OptionError, Options

# An object in a module.
_NAME = "^[^:]+:[^:]+$"


def _imported(value: Any) -> Any:
    """Import the object that a text names. Return any other object as it is: a dict from code may have it."""
    if isinstance(value, (Mapping, list, tuple, int, float)):
        msg = "give an object, or name one as module:name"
        raise ValueError(msg)
    if not isinstance(value, str):
        return value
    if ":" not in value:
        msg = "give it as module:name"
        raise ValueError(msg)
    try:
        return pkgutil.resolve_name(value)
    except (ImportError, AttributeError, ValueError) as error:
        msg = f"it cannot be imported: {error}"
        raise ValueError(msg) from error


def _no_flag(value: Any) -> Any:
    """Refuse True and False, which Python treats as 1 and 0."""
    if isinstance(value, bool):
        msg = "give a number"
        raise ValueError(msg)
    return value


def split(value: Any) -> Any:
    """Split a text at its commas: the environment has no lists."""
    return [each.strip() for each in value.split(",")] if isinstance(value, str) else value


def kind_of(value: Any) -> str:
    """Return the tag of a value: options of its own, or a reference to an object that is made elsewhere."""
    return "(options)" if isinstance(value, (Mapping, Options)) else "(reference)"


def _address(value: str) -> str:
    """Refuse an address without a scheme or a host."""
    if re.match("https?://[^/]", value) is None:
        raise ValueError("must begin with http:// or https://, and then name a host")
    return value


Address = Annotated[str, AfterValidator(_address)]
Positive = Annotated[int, Field(ge=1), BeforeValidator(_no_flag)]
NotNegative = Annotated[int, Field(ge=0), BeforeValidator(_no_flag)]
Seconds = Annotated[float, Field(gt=0), BeforeValidator(_no_flag)]
# The ttl of a thread in seconds, and that of a memory in minutes.
Ttl = Annotated[int, Field(ge=1, le=TTL_SECONDS_MAX), BeforeValidator(_no_flag)]
TtlMinutes = Annotated[float, Field(gt=0, le=TTL_SECONDS_MAX // 60), BeforeValidator(_no_flag)]
SecondsOrZero = Annotated[float, Field(ge=0), BeforeValidator(_no_flag)]
Name = Annotated[str, Field(pattern=_NAME)]
Reference = Annotated[Any, BeforeValidator(_imported)]


def made_object(name: str, value: Any) -> Any:
    """Return the object that an option refers to, or call the function or class that makes it.

    Raises:
        OptionError: The option leads to a text or a number instead.
    """
    made = value() if isinstance(value, type) or inspect.isroutine(value) else value
    if isinstance(made, (str, int, float)):
        # The constructor would show the value, though it may be a secret that was named by mistake.
        raise OptionError(
            name, f"names a value of type {type(made).__name__}; name an object, or a function that makes one"
        )
    return made


def made_function(name: str, value: Any) -> Any:
    """Return the function that an option refers to, or the object that a class makes."""
    return value if inspect.isroutine(value) else made_object(name, value)
