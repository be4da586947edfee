"""The options that stores share: an index of embeddings, and ttls."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from .fields import Positive, Reference, TtlMinutes, made_function, split
from .types import Alternatives, Options


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

    def index_config(self) -> Any:
        """Return LangGraph's `IndexConfig`, or None."""
        return None if self.index is None else self.index.config()


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
        return {"index": self.index_config(), "ttl": ttl}
