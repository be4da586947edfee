"""Paths of labels in partition keys, for memories and cached nodes.

Each label is escaped by itself and ends in a slash, so no two lists of labels make the same path, and a prefix of a
path is one of whole labels. A mark behind the path says what the partition holds: a percent sign with a letter that
escaping never puts there. So no partition of a thread, `esc(thread)#esc(namespace)`, has such a key, nor begins one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from langgraph.checkpoint.dynamodb._format.items import escape, unescape

# Memories of the store, its register of partitions, and entries of the node cache.
MEMORIES_MARK = "%M#"
REGISTER_MARK = "%N#"
CACHE_MARK = "%K#"
_MARK = re.compile("%[MNK]#$")


def label_path(labels: Sequence[str]) -> str:
    """Return labels as a path; raise `CheckpointerInputError` if DynamoDB cannot store one."""
    return "".join(escape(label, "namespace").replace("/", "%2F") + "/" for label in labels)


def parse_labels(path: str) -> tuple[str, ...]:
    """Return the labels of a path."""
    return tuple(unescape(label) for label in path.split("/")[:-1])


def partition_labels(pk: str) -> tuple[str, ...] | None:
    """Return the labels in a partition key; `None` if it is the key of a thread."""
    path, is_marked = _MARK.subn("", pk)
    return parse_labels(path) if is_marked else None
