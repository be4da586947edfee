"""The types of checkpointers, stores and caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator
from typing_extensions import Self

from langgraph.checkpoint.dynamodb._runtime.fork import without_forks

Made = TypeVar("Made")


class Options(BaseModel):
    """Base class of a type's options. Unknown options are refused, and checked ones never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    other_names: ClassVar[Mapping[str, str]] = {}
    """Hints for options that other savers have."""


def _require_one(schema: dict[str, Any], model: type[Alternatives]) -> None:
    schema["oneOf"] = [{"required": [each]} for each in model.alternatives]


class Alternatives(Options):
    """Base class of options of which exactly one has to be given, besides others."""

    model_config = ConfigDict(json_schema_extra=_require_one)

    alternatives: ClassVar[tuple[str, ...]]

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(getattr(self, each) is not None for each in self.alternatives) != 1:
            *others, last = self.alternatives
            msg = f"give exactly one of {', '.join(others)} and {last}"
            raise ValueError(msg)
        return self


class OptionError(ValueError):
    """An option that turned out to be unusable when it was opened.

    Args:
        option: The option's name.
        says: What is wrong with it and what may stand there, without its value.
    """

    def __init__(self, option: str, says: str) -> None:
        """Store both, so that `saying_where` can add where the option stands."""
        super().__init__(f"{option}: {says}")
        self.option = option
        self.says = says


@dataclass(frozen=True)
class ComponentType(Generic[Made]):
    """A type of checkpointer, store or cache.

    Args:
        options: The model of the options under `config`, with a description for each field.
        open: Returns a context manager of a ready object, for `invoke`; it may raise `OptionError`.
        aopen: Returns an async context manager of a ready object, for `ainvoke`; it may raise `OptionError`.
        install: The argument of `pip install` to suggest if an import fails.
    """

    options: type[BaseModel]
    open: Callable[[Any], AbstractContextManager[Made]]
    aopen: Callable[[Any], AbstractAsyncContextManager[Made]]
    install: str


@dataclass(frozen=True)
class TypeRegistry:
    """The types of one component by their names.

    Args:
        component: What the types make: `checkpointer`, `store` or `cache`.
        names: The types' names. Each has a module of its name in `config`, which has the type under the component's
            name in capitals.
    """

    component: str
    names: tuple[str, ...]

    def find(self, name: str) -> ComponentType[Any]:
        """Load the type of a name."""
        with without_forks():
            module = import_module(f"langgraph.checkpoint.dynamodb.config.{name}")
        found: ComponentType[Any] = getattr(module, self.component.upper())
        return found


CHECKPOINTERS = TypeRegistry("checkpointer", ("memory", "sqlite", "postgres", "dynamodb", "http"))
STORES = TypeRegistry("store", ("memory", "sqlite", "postgres", "dynamodb", "http"))
CACHES = TypeRegistry("cache", ("memory", "sqlite", "dynamodb", "http"))
