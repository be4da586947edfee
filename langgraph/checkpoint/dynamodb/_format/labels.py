"""Paths of labels in partition keys, for memories and cached nodes.

Each label is escaped by itself and ends in a slash, so no two lists of labels make the same path, and a prefix of a
path is one of whole labels. A mark behind the path says what the partition holds: a percent sign with a letter that
escaping never puts there. So no partition of a thread, `esc(thread)#esc(namespace)`, has such a key, nor begins one.

LangGraph refuses some labels of memories, above all those with a dot. The *label of a name*, such as a tenant's, is the
name with these characters percent-encoded. In the key of a memory, such a dot is a dot again: so the keys of a tenant's
memories begin like the ids of its threads, and one policy covers both.
"""

import re
from collections.abc import Sequence

from .items import escape, unescape

# Memories of the store, its register of partitions, and entries of the node cache.
MEMORIES_MARK = "%M#"
REGISTER_MARK = "%N#"
CACHE_MARK = "%K#"
_MARK = re.compile("%([MNK])#$")
# What LangGraph refuses in a label, the whole of one that it reserves, and what encodes them.
_REFUSED = re.compile(r"[.\x00]|%(?=2E|25|00|6C)|^l(?=anggraph\Z)")
_ENCODED = re.compile("%(2E|25|00|6C)")
_DOT = "%2E"


def label_of(name: str) -> str:
    """Return the label that stands for a tenant or an owner in namespaces of memories.

    It is the name itself, unless LangGraph refuses that: a dot becomes `%2E`, NUL `%00`, and `langgraph` becomes
    `%6Canggraph`. A percent sign that would look like one of these becomes `%25`, so no two names have the same label.
    """
    return _REFUSED.sub(lambda found: f"%{ord(found[0]):02X}", name)


def name_of(label: str) -> str:
    """Return the name that a label of `label_of` stands for."""
    return _ENCODED.sub(lambda found: chr(int(found[1], 16)), label)


def label_path(labels: Sequence[str]) -> str:
    """Return labels as a path; raise `CheckpointerInputError` if DynamoDB cannot store one."""
    return "".join(escape(label, "namespace").replace("/", "%2F") + "/" for label in labels)


def parse_labels(path: str) -> tuple[str, ...]:
    """Return the labels of a path."""
    return tuple(unescape(label) for label in path.split("/")[:-1])


def memory_path(labels: Sequence[str]) -> str:
    """Return labels of memories as a path. None of them has a dot, so dots stand for encoded ones."""
    return label_path(labels).replace(escape(_DOT, "namespace"), ".")


def parse_memory_labels(path: str) -> tuple[str, ...]:
    """Return the labels of a path of `memory_path`."""
    return parse_labels(path.replace(".", escape(_DOT, "namespace")))


def partition_labels(pk: str) -> tuple[str, ...] | None:
    """Return the labels in a partition key; `None` if it is the key of a thread."""
    mark = _MARK.search(pk)
    if mark is None:
        return None
    parse = parse_labels if mark[0] == CACHE_MARK else parse_memory_labels
    return parse(pk[: mark.start()])
