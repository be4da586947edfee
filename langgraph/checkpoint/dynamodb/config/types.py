"""The types of checkpointers, stores and caches: those of this package, and those that other packages register."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, TypeVar

from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
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
    """A type of checkpointer, store or cache, registered under a name.

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


class CheckpointerType(ComponentType[BaseCheckpointSaver[Any]]):
    """A type of checkpointer."""


class StoreType(ComponentType[BaseStore]):
    """A type of store."""


class CacheType(ComponentType[BaseCache[Any]]):
    """A type of node cache."""


@dataclass(frozen=True)
class TypeRegistry:
    """The types of one component by their names.

    Args:
        component: What the types make: `checkpointer`, `store` or `cache`.
        built_in: The names of this package's types. Each has a module of its name in `config`, which has the type under
            the component's name in capitals.
        kind: The class of the types.
    """

    component: str
    built_in: tuple[str, ...]
    kind: type[ComponentType[Any]]

    @property
    def entry_point_group(self) -> str:
        """Return the group in which other packages register types; `docs/configuration.md` describes how."""
        return f"langgraph_dynamodb.{self.component}s"

    def names(self) -> list[str]:
        """Return the names of all types, those of this package first, without loading any."""
        return [*self.built_in, *sorted({each.name for each in self._registered()} - {*self.built_in})]

    def find(self, name: str) -> ComponentType[Any]:
        """Load the type of a name.

        Raises:
            OptionError: The type that is registered under the name cannot be loaded, or is registered twice.
        """
        with without_forks():
            if name in self.built_in:
                module = import_module(f"langgraph.checkpoint.dynamodb.config.{name}")
                found = getattr(module, self.component.upper())
            else:
                found = _load([each for each in self._registered() if each.name == name])
        if not isinstance(found, self.kind):
            kind = self.kind.__name__
            msg = f"{name} is registered as an object that is not a {kind}; let its entry point name a {kind}"
            raise OptionError("type", msg)
        return found

    def _registered(self) -> tuple[EntryPoint, ...]:
        return tuple(entry_points(group=self.entry_point_group))


CHECKPOINTERS = TypeRegistry(
    "checkpointer", ("memory", "sqlite", "postgres", "dynamodb", "http"), CheckpointerType
)
STORES = TypeRegistry("store", ("memory", "sqlite", "postgres", "dynamodb", "http"), StoreType)
CACHES = TypeRegistry("cache", ("memory", "sqlite", "dynamodb", "http"), CacheType)


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
