"""Options: their base classes, the kinds of fields, and the options that several types share."""

import inspect
import pkgutil
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from typing_extensions import Self

from .._format.limits import TTL_SECONDS_MAX

Made = TypeVar("Made")
# An object in a module.
_NAME = "^[^:]+:[^:]+$"


class Options(BaseModel):
    """Base class of a type's options. Unknown options are refused, and checked ones never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    other_names: ClassVar[Mapping[str, str]] = {}
    """Hints for options that other savers have."""

    def configs(self) -> dict[str, Any]:
        """Return the options that constructors of LangGraph's stores take as dicts of their own."""
        return {}


class Alternatives(Options):
    """Base class of options of which exactly one has to be given, besides others."""

    alternatives: ClassVar[tuple[str, ...]]

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(getattr(self, each) is not None for each in self.alternatives) != 1:
            *others, last = self.alternatives
            raise ValueError(f"give exactly one of {', '.join(others)} and {last}")
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


def _imported(value: Any) -> Any:
    """Import the object that a text names. Return any other object as it is: a dict from code may have it."""
    if isinstance(value, (Mapping, list, tuple, int, float)):
        raise ValueError("give an object, or name one as module:name")
    if not isinstance(value, str):
        return value
    if ":" not in value:
        raise ValueError("give it as module:name")
    try:
        return pkgutil.resolve_name(value)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"it cannot be imported: {error}") from error


def _no_flag(value: Any) -> Any:
    """Refuse True and False, which Python treats as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("give a number")
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


OnEvent = Annotated[
    Reference | None,
    Field(
        description="A function that receives an `Event` for each operation, or `Events(function, ...)`. It runs at the"
        " end of the call and must return quickly. Its errors are logged."
    ),
]
OwnerFrom = Annotated[
    str | None,
    Field(
        min_length=1,
        description="The key of a config's `configurable`, or of its `metadata`, that names the owner of a thread, such"
        " as `user_id`. The first put of each thread then enters it in the directory, which `threads` lists; without"
        " the option only `set_thread` does. A later run never changes an owner.",
    ),
]
CachePrefix = Annotated[
    tuple[str, ...],
    BeforeValidator(split),
    Field(
        description="Labels in front of every namespace, such as the tenant. `clear()` deletes only entries under them."
    ),
]


class IndexOptions(Alternatives):
    """LangGraph's `IndexConfig`: the store embeds texts of memories, and searches by similarity."""

    alternatives = ("embed", "embed_function")

    embed: str | None = Field(
        default=None,
        pattern="^[^:]+:.",
        description="The embedding model as provider:model, such as openai:text-embedding-3-small.",
    )
    embed_function: Reference | None = Field(
        default=None,
        description="LangChain Embeddings, a class of them, or a function that embeds a list of texts, as module:name.",
    )
    dims: Positive = Field(description="The number of dimensions of the embeddings.")
    fields: Annotated[list[str], BeforeValidator(split)] | None = Field(
        default=None,
        description="The fields of a value whose texts are embedded; by default the whole value.",
    )

    def config(self) -> dict[str, Any]:
        """Return LangGraph's `IndexConfig`.

        Raises:
            OptionError: `embed_function` leads to a text or a number.
        """
        embed = self.embed or made_function("index.embed_function", self.embed_function)
        return {"dims": self.dims, "embed": embed} | ({"fields": self.fields} if self.fields else {})


class DistanceIndexOptions(IndexOptions):
    """An index of a store that knows several distances."""

    distance_type: Literal["cosine", "l2", "inner_product"] = Field(
        default="cosine", description="How embeddings are compared."
    )

    def config(self) -> dict[str, Any]:
        """Return LangGraph's `IndexConfig`, with the distance."""
        return {**super().config(), "distance_type": self.distance_type}


class TtlOptions(Options):
    """LangGraph's `TTLConfig`, in minutes."""

    default_ttl: TtlMinutes | None = Field(
        default=None,
        description="Minutes after which a memory expires, counted from when it was stored or read; otherwise never.",
    )
    refresh_on_read: bool = Field(default=True, description="Whether a read renews a memory's ttl.")
    omit_expired: bool = Field(default=True, description="Whether reads leave out expired memories.")
    sweep_interval_minutes: Positive | None = Field(
        default=None, description="Minutes between deletions of expired memories; by default 5."
    )


class IndexedOptions(Options):
    """The option that every store has."""

    index: IndexOptions | None = Field(
        default=None,
        description="Lets the store embed texts and search by similarity. Takes `dims`, `embed` and `fields` of"
        " LangGraph's `IndexConfig`.",
    )

    def configs(self) -> dict[str, Any]:
        """Return `index` as LangGraph's `IndexConfig`, or None."""
        return {"index": None if self.index is None else self.index.config()}


class StoreOptions(IndexedOptions):
    """The options that every store has whose memories outlive the process."""

    ttl: TtlOptions | None = Field(
        default=None,
        description="When memories expire, as LangGraph's `TTLConfig`: `default_ttl` in minutes, and"
        " `refresh_on_read`. In the table, expired memories are always omitted, and DynamoDB removes them.",
    )

    def configs(self) -> dict[str, Any]:
        """Return `index` and `ttl` as the constructors of stores take them."""
        ttl = None if self.ttl is None else self.ttl.model_dump(exclude_none=True)
        return {**super().configs(), "ttl": ttl}
