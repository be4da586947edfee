"""The types of checkpointers: the five of this package, and those that other packages register."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from pydantic import BaseModel, ConfigDict

from langgraph.checkpoint.dynamodb._runtime.fork import without_forks

# Other packages register their types here; `docs/configuration.md` describes how.
ENTRY_POINT_GROUP = "langgraph_dynamodb.checkpointers"

# Modules by name, so that each is imported only when it is needed.
BUILT_IN = {
    "memory": "langgraph.checkpoint.dynamodb.config.memory",
    "sqlite": "langgraph.checkpoint.dynamodb.config.sqlite",
    "postgres": "langgraph.checkpoint.dynamodb.config.postgres",
    "dynamodb": "langgraph.checkpoint.dynamodb.config.dynamodb",
    "http": "langgraph.checkpoint.dynamodb.config.http",
}


class Options(BaseModel):
    """Base class of a type's options. Unknown options are refused, and checked ones never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    other_names: ClassVar[Mapping[str, str]] = {}
    """Hints for options that other savers have."""


class OptionError(ValueError):
    """An option that turned out to be unusable when the checkpointer was opened.

    Args:
        option: The option's name.
        says: What is wrong with it and what may stand there, without its value.
    """

    def __init__(self, option: str, says: str) -> None:
        """Store both, so that `create_checkpointer` can add where the option stands."""
        super().__init__(f"{option}: {says}")
        self.option = option
        self.says = says


@dataclass(frozen=True)
class CheckpointerType:
    """A type of checkpointer, registered under a name.

    Args:
        options: The model of the options under `config`, with a description for each field.
        open: Returns a context manager of a ready saver, for `invoke`; it may raise `OptionError`.
        aopen: Returns an async context manager of a ready saver, for `ainvoke`; it may raise `OptionError`.
        install: The argument of `pip install` to suggest if an import fails.
    """

    options: type[BaseModel]
    open: Callable[[Any], AbstractContextManager[BaseCheckpointSaver[Any]]]
    aopen: Callable[[Any], AbstractAsyncContextManager[BaseCheckpointSaver[Any]]]
    install: str


def type_names() -> list[str]:
    """Return the names of all types, those of this package first, without loading any."""
    return [*BUILT_IN, *sorted({each.name for each in _registered()} - BUILT_IN.keys())]


def find_type(name: str) -> CheckpointerType:
    """Load the type of a name.

    Raises:
        OptionError: The type that is registered under the name cannot be loaded, or is registered twice.
    """
    with without_forks():
        if name in BUILT_IN:
            found = import_module(BUILT_IN[name]).TYPE
        else:
            found = _load([each for each in _registered() if each.name == name])
    if not isinstance(found, CheckpointerType):
        raise OptionError("type", f"{name} is registered as something that is no CheckpointerType")
    return found


def _registered() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def _load(registered: list[EntryPoint]) -> object:
    if len({each.value for each in registered}) > 1:
        packages = ", ".join(sorted(each.dist.name for each in registered if each.dist))
        raise OptionError(
            "type", f"{registered[0].name} is registered by several packages: {packages}; remove all but one"
        )
    try:
        return registered[0].load()
    except (ImportError, AttributeError) as error:
        says = f"{registered[0].name} is registered as {registered[0].value}, which cannot be loaded: {error}"
        raise OptionError("type", says) from error
