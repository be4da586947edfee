"""Arguments of the saver's methods other than stored values: ids, configs, namespaces, filters and limits.

Each is checked before any request. A value that is not an id must not become one by `str`: `delete_thread(None)` must
not delete a thread named "None".
"""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from .._format import items
from .._format.items import Partition
from ..errors import CheckpointerInputError

# The largest whole number that readers of JSON in every language agree on (RFC 8259, section 6).
COUNT_MAX = (1 << 53) - 1
# How many characters of a refused argument an error shows.
_SHOWN_MAX = 200


def shortened(value: Any) -> str:
    """Return a refused argument as an error shows it. It may come from a stranger, and be of any size."""
    try:
        text = repr(value)
    except RecursionError:
        return "nested too deeply to be shown"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}... ({len(text):,} characters)"


def checked_id(value: Any, name: str) -> str:
    """Return the id of a thread or a run as text. LangGraph's own savers accept whole numbers and UUIDs too."""
    is_id = isinstance(value, (str, int, UUID)) and not isinstance(value, bool)
    if not is_id or value == "":
        raise CheckpointerInputError(
            f"{name} is {value!r}; give text that is not empty, a whole number or a UUID"
        )
    return str(value)


def checked_ids(values: Any, name: str) -> list[str]:
    """Return several ids of threads or runs as text, without duplicates."""
    if isinstance(values, (str, bytes)):
        raise CheckpointerInputError(
            f"{name} is a single {type(values).__name__}; give a list of ids, or its characters would count as ids"
        )
    if not isinstance(values, Iterable):
        raise CheckpointerInputError(f"{name} is {values!r}; give a list of ids")
    return list(dict.fromkeys(checked_id(each, f"an id in {name}") for each in values))


def checked_text(value: Any, name: str) -> str:
    """Return an argument that has to be text and may be empty."""
    if not isinstance(value, str):
        raise CheckpointerInputError(f"{name} is {value!r}; give text")
    return value


def target(config: RunnableConfig) -> Partition:
    """Return the namespace that a config points to; raise `CheckpointerInputError` if it names none."""
    configurable = _configurable(config, "config")
    thread_id = configurable.get("thread_id")
    if thread_id is None:
        raise CheckpointerInputError(
            'config["configurable"]["thread_id"] is missing; give the id of the thread'
        )
    namespace = configurable.get("checkpoint_ns")
    return items.partition_of(
        checked_id(thread_id, "thread_id"),
        "" if namespace is None else checked_text(namespace, "checkpoint_ns"),
    )


def root_of_run(
    partition: Partition, config: RunnableConfig, checkpoint_id: str | None, parents: Any = None
) -> str | None:
    """Return the root checkpoint that a run is at: the one that a call names or, in a subgraph, the root graph's.

    LangGraph names those above in `checkpoint_map`, and in a checkpoint's metadata as `parents`.
    """
    if not partition.namespace:
        return checkpoint_id
    above = parents if isinstance(parents, Mapping) else _configurable(config, "config").get("checkpoint_map")
    found = above.get("") if isinstance(above, Mapping) else None
    return found if isinstance(found, str) and items.is_checkpoint_id(found) else None


def started_from(partition: Partition, root_id: str | None) -> str | None:
    """Return the root checkpoint from which a namespace of one subgraph call started; `None` for other namespaces.

    The namespace of a call has a task id behind a colon. The state of other subgraphs outlives their calls.
    """
    return root_id if ":" in partition.namespace else None


def listed_config(config: RunnableConfig | None) -> RunnableConfig | None:
    """Return the config of a list, or `None` for all threads. LangGraph's own savers take `{}` for `None`, too."""
    return None if config == {} else config


def config_of(partition: Partition, checkpoint_id: str) -> RunnableConfig:
    """Return the config that points to a checkpoint."""
    return {
        "configurable": {
            "thread_id": partition.thread_id,
            "checkpoint_ns": partition.namespace,
            "checkpoint_id": checkpoint_id,
        }
    }


def checkpoint_id_in(config: RunnableConfig, name: str = "config") -> str | None:
    """Return the id of the checkpoint that a config points to; `None`, as in LangGraph, if it is missing or empty."""
    checkpoint_id = _configurable(config, name).get("checkpoint_id")
    return None if checkpoint_id is None else checked_text(checkpoint_id, "checkpoint_id") or None


def _configurable(config: Any, name: str) -> Mapping[str, Any]:
    configurable = config.get("configurable") or {} if isinstance(config, Mapping) else None
    if not isinstance(configurable, Mapping):
        raise CheckpointerInputError(f'{name} is {config!r}; give {{"configurable": {{"thread_id": ...}}}}')
    return configurable


def id_of(checkpoint: Any) -> str:
    """Return the id of a checkpoint that is to be stored."""
    checkpoint_id = checkpoint.get("id") if isinstance(checkpoint, Mapping) else None
    if not isinstance(checkpoint_id, str) or not checkpoint_id:
        raise CheckpointerInputError(
            f'checkpoint["id"] is {checkpoint_id!r}; give text that is not empty, larger than the ids before it'
        )
    return checkpoint_id


def checked_channels(channels: Any) -> tuple[str, ...]:
    """Return the names of channels; raise for a single name, whose letters would pass for names."""
    if isinstance(channels, str):
        raise CheckpointerInputError(f"channels is the single name {channels!r}; give a list of names")
    return tuple(channels)


def checked_filter(metadata_filter: Any) -> dict[str, Any]:
    """Return the metadata that listed checkpoints have to match; empty for `None`."""
    if metadata_filter is not None and not isinstance(metadata_filter, Mapping):
        raise CheckpointerInputError(
            f"filter is {metadata_filter!r}; give a dict of metadata, such as {{'source': 'loop'}}, or None"
        )
    return dict(metadata_filter or {})


def checked_before(before: RunnableConfig | None) -> str | None:
    """Return the id of the checkpoint that a list starts below; `None` for the newest checkpoint."""
    checkpoint_id = None if before is None else checkpoint_id_in(before, "before")
    if before is not None and checkpoint_id is None:
        raise CheckpointerInputError(
            f'before is {before!r}; give the config of a checkpoint, with its "checkpoint_id", or None'
        )
    return checkpoint_id


def checked_limit(limit: Any) -> int | None:
    """Return the maximum number of checkpoints to list; `None` for no limit."""
    if limit is not None and (type(limit) is not int or not 0 <= limit <= COUNT_MAX):
        raise CheckpointerInputError(
            f"limit is {limit!r}; give a whole number from 0 to {COUNT_MAX:,}, or None"
        )
    return limit
