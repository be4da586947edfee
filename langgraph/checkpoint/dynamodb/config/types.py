"""A type of checkpointer, store or cache: its options, and how to make an object from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator
from typing_extensions import Self

Made = TypeVar("Made")


class Options(BaseModel):
    """Base class of a type's options. Unknown options are refused, and checked ones never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    other_names: ClassVar[Mapping[str, str]] = {}
    """Hints for options that other savers have."""


class Alternatives(Options):
    """Base class of options of which exactly one has to be given, besides others."""

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
class ComponentType:
    """A type of checkpointer, store or cache.

    Args:
        options: The model of the options under `config`, with a description for each field.
        make: Makes an object from the options, as a context manager; it may raise `OptionError`.
        install: The argument of `pip install` to suggest if an import fails.
        amake: Makes the object for `ainvoke`, as an async context manager. If it is None, what `make` makes serves
            both. LangGraph has two classes instead, and either has to be set up before it is used.
    """

    options: type[BaseModel]
    make: Callable[[Any], AbstractContextManager[Any]]
    install: str
    amake: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None
