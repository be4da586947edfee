"""Keys of memories: namespaces as labels, each escaped by itself, so no two namespaces share a key.

A partition has the memories of all namespaces with the same first two labels. `label` is the label with every byte up
to 0x25 and the slash percent-encoded, so a slash only ever ends a label and `#` only ever separates. An encoded dot of
a label is a dot in its key (`_format/labels.py`).

    memory           PK label/label/%M#   SK M#label/…#esc(key)
    vector           PK the same          SK V#label/…#esc(key)#<revision>#<number>
    segment          PK the same          SK S#<id in hexadecimal>
    partition entry  PK label/%N#         SK P#label/

The partition key of a thread is `esc(thread)#esc(namespace)`, and escaping never makes `%M` or `%N`. So no key of a
thread is one of a memory, nor the beginning of one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb._format import items, labels, limits
from langgraph.checkpoint.dynamodb._format.items import Item

MEMORIES = "M#"
VECTORS = "V#"
ENTRIES = "P#"
# How many labels of a namespace its partition key holds.
PARTITION_LABELS = 2


@dataclass(frozen=True)
class Address:
    """Where one memory is."""

    namespace: tuple[str, ...]
    key: str
    pk: str
    sk: str

    @property
    def item_key(self) -> Item:
        """The primary key of the memory's item."""
        return items.key(self.pk, self.sk)


def address_of(namespace: Sequence[str], name: str) -> Address:
    """Return the address of a memory; raise `CheckpointerInputError` if DynamoDB cannot store its key."""
    sk = f"{path_prefix(MEMORIES, namespace)}#{items.escape(name, 'key')}"
    items.checked_key(sk, limits.SORT_KEY_BYTES_MAX, "the namespace's labels with the key")
    return Address(tuple(namespace), name, partition_of(namespace), sk)


def parse_address(item: Item) -> Address:
    """Return the address of a memory that was read."""
    pk, sk = items.partition_key(item), items.sort_key(item)
    path, separator, name = sk.removeprefix(MEMORIES).partition("#")
    if not (pk.endswith(labels.MEMORIES_MARK) and sk.startswith(MEMORIES) and separator):
        raise items.damaged(item, "its key is not one that this package writes")
    return Address(
        labels.parse_memory_labels(pk.removesuffix(labels.MEMORIES_MARK) + path), items.unescape(name), pk, sk
    )


def partition_of(namespace: Sequence[str]) -> str:
    """Return the partition key of a namespace's memories."""
    # The register has the second label in a sort key, which may be shorter.
    entry_sk = ENTRIES + labels.memory_path(namespace[1:PARTITION_LABELS])
    items.checked_key(entry_sk, limits.SORT_KEY_BYTES_MAX, "the namespace's second label")
    pk = labels.memory_path(namespace[:PARTITION_LABELS]) + labels.MEMORIES_MARK
    return items.checked_key(pk, limits.PARTITION_KEY_BYTES_MAX, "the namespace's first two labels")


def path_prefix(kind: str, namespace: Sequence[str]) -> str:
    """Return the prefix of the sort keys of one kind under a namespace, in its partition."""
    return kind + labels.memory_path(namespace[PARTITION_LABELS:])


def after(prefix: str) -> str:
    """Return the first sort key behind all those with a prefix. No item has it."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def ranges_from(
    partitions: Iterable[str], prefix: str, start: tuple[str, str] | None
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the range of sort keys with a prefix in each partition, in order, as far as they are not before a place.

    The place may be anywhere, and the first range begins with it: DynamoDB refuses a query that would begin behind its
    end, and no key is longer than the longest one.
    """
    end = after(prefix)
    for pk in partitions:
        first = prefix if start is None or pk > start[0] else max(prefix, start[1])
        if (start is None or pk >= start[0]) and first < end:
            yield pk, (first, end)


def vectors_prefix(address: Address) -> str:
    """Return the prefix of the sort keys of a memory's vectors."""
    return f"{VECTORS}{address.sk.removeprefix(MEMORIES)}#"


def vector_sk(address: Address, revision: str, number: int) -> str:
    """Return the sort key of one vector of a memory's value."""
    sk = f"{vectors_prefix(address)}{revision}#{number}"
    return items.checked_key(
        sk, limits.SORT_KEY_BYTES_MAX, "the namespace's labels with the key of a memory with vectors"
    )


def parse_vector(item: Item) -> tuple[str, str]:
    """Return the sort key of the memory that a vector belongs to, and its revision."""
    parts = items.sort_key(item).removeprefix(VECTORS).split("#")
    if len(parts) != 4:
        raise items.damaged(item, "its key is not one that this package writes")
    return f"{MEMORIES}{parts[0]}#{parts[1]}", parts[2]


def part_of(address: Address, revision: str) -> str:
    """Return what a segment says of the value that it belongs to."""
    return f"{address.sk}#{revision}"


def parse_part_of(item: Item, said: str) -> tuple[str, str]:
    """Return the sort key of the memory that a segment belongs to, and its revision."""
    parts = said.split("#")
    if len(parts) != 4:
        raise items.damaged(item, "it does not say which value it belongs to")
    return "#".join(parts[:3]), parts[3]


def is_vector_under(item: Item, namespace: Sequence[str]) -> bool:
    """Tell whether a vector belongs to a memory under a namespace."""
    pk = items.partition_key(item)
    if len(namespace) < PARTITION_LABELS:
        return pk.startswith(labels.memory_path(namespace))
    return pk == partition_of(namespace) and items.sort_key(item).startswith(path_prefix(VECTORS, namespace))


# The register of partitions, for prefixes of less than two labels


def register_of(label: str) -> str:
    """Return the partition key of the entries of all partitions with a first label."""
    return items.checked_key(
        labels.memory_path([label]) + labels.REGISTER_MARK,
        limits.PARTITION_KEY_BYTES_MAX,
        "the namespace's first label",
    )


def entry_key(pk: str) -> Item:
    """Return the key of a partition's entry in the register."""
    first, _, second = pk.removesuffix(labels.MEMORIES_MARK).partition("/")
    return items.key(f"{first}/{labels.REGISTER_MARK}", ENTRIES + second)


def entry_partition(item: Item) -> str:
    """Return the partition key that an entry of the register names."""
    pk, sk = items.partition_key(item), items.sort_key(item)
    if not (pk.endswith(labels.REGISTER_MARK) and sk.startswith(ENTRIES)):
        raise items.damaged(item, "its key is not one that this package writes")
    return pk.removesuffix(labels.REGISTER_MARK) + sk.removeprefix(ENTRIES) + labels.MEMORIES_MARK
