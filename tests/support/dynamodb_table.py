"""One table of the in-memory DynamoDB: its items with their last versions, its keys and its indexes.

It knows what is stored and what a read may see of it, and nothing of requests (`dynamodb_model`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.support import dynamodb_expressions, dynamodb_values
from tests.support.dynamodb_values import Item

ITEM_BYTES_MAX = 400 * 1024
HASH_KEY_BYTES_MAX = 2048
RANGE_KEY_BYTES_MAX = 1024

# How many versions of one item are kept, and so how old an eventual read can be.
VERSIONS_KEPT = 8

Key: TypeAlias = tuple[dynamodb_values.Content, dynamodb_values.Content]
Schema: TypeAlias = Mapping[str, Any]


@dataclass
class Faults:
    """What DynamoDB leaves open, decided by the test. By default every read is fresh and every batch complete."""

    missed_writes: Callable[[Key, int], int] = lambda _key, _written: 0
    """How many of an item's last writes an eventually consistent read misses; at most the number given."""

    index_lag: Callable[[Key, int], int] = lambda _key, _written: 0
    """How many of an item's last writes have not reached the secondary index yet; at most the number given."""

    reading_moment: Callable[[int, int], int] = lambda _earliest, latest: latest
    """When, between two sequence numbers, a strong read that took some time came to the next item."""

    unprocessed: Callable[[str, int], Collection[int]] = lambda _method, _count: ()
    """Which positions of a batch of the given method and length are left unprocessed."""


class Version:
    """An item as one write left it, or its absence."""

    __slots__ = ("_size", "item", "sequence")

    def __init__(self, item: Item | None, sequence: int = 0) -> None:
        """Take the item, in the form of `canonical`, and the sequence number of the write."""
        self.item = item
        self.sequence = sequence
        self._size: int | None = None

    @property
    def size(self) -> int:
        """Its size in bytes; 0 if there is no item."""
        if self._size is None:
            self._size = dynamodb_values.item_bytes(self.item or {})
        return self._size


ABSENT = Version(None)


@dataclass
class _Record:
    """The last versions of one item, oldest first."""

    versions: list[Version] = field(default_factory=lambda: [ABSENT])

    @property
    def latest(self) -> Version:
        return self.versions[-1]

    def missing(self, writes: int) -> Version:
        return self.versions[-1 - min(writes, len(self.versions) - 1)]

    def as_of(self, sequence: int) -> Version:
        return next((each for each in reversed(self.versions) if each.sequence <= sequence), self.versions[0])

    def append(self, version: Version) -> None:
        self.versions = [*self.versions[1 - VERSIONS_KEPT :], version]


@dataclass(frozen=True)
class View:
    """What a Query reads: the table, or an index of it."""

    hash_name: str
    range_name: str
    key_names: tuple[str, ...]
    index_name: str | None = None
    projected: frozenset[str] | None = None

    def holds(self, item: Item) -> bool:
        """Tell whether this view has an entry of an item; a sparse index has none of an item without its keys."""
        return self.hash_name in item and self.range_name in item

    def entry(self, item: Item) -> Item | None:
        """Return what this view holds of an item, if it does."""
        if not self.holds(item):
            return None
        return item if self.projected is None else {name: item[name] for name in item.keys() & self.projected}

    def order(self, entry: Item) -> tuple[dynamodb_values.Content, ...]:
        """Return what the entries of one hash key sort by."""
        return tuple(dynamodb_values.sort_key(entry[name]) for name in (self.range_name, *self.key_names))


@dataclass
class Reads:
    """Which version of each item one request sees, from the moment it was sent to the moment it is answered."""

    faults: Faults
    moment: int
    latest: int

    def fresh(self) -> Reads:
        """Return a reader that begins at the same moment: the reads of a batch have no order among them."""
        return Reads(self.faults, self.moment, self.latest)

    def see(self, key: Key, record: _Record, *, consistent: bool) -> Version:
        """Return the version seen; a page comes to its items in order, so what it saw of one bounds the next."""
        if not consistent:
            return record.missing(self.faults.missed_writes(key, len(record.versions) - 1))
        if self.moment < self.latest:
            self.moment = self.faults.reading_moment(self.moment, self.latest)
        return record.as_of(self.moment)


class Table:
    """The items of one table, described by the keyword arguments of `create_table`."""

    def __init__(self, schema: Schema) -> None:
        """Create the table, empty and without faults."""
        self.name: str = schema["TableName"]
        self.faults = Faults()
        self.sequence = 0
        self._key_types = {
            attribute["AttributeName"]: attribute["AttributeType"]
            for attribute in schema["AttributeDefinitions"]
        }
        self.primary = View(*_key_names(schema), key_names=_key_names(schema))
        self.indexes = {
            index["IndexName"]: _index_view(index, self.primary)
            for index in schema.get("GlobalSecondaryIndexes", ())
        }
        self._partitions: dict[dynamodb_values.Content, dict[dynamodb_values.Content, _Record]] = {}
        # What each index holds an entry of, or held one.
        self._indexed: dict[str, dict[Key, _Record]] = {name: {} for name in self.indexes}

    def view(self, index_name: str | None) -> View:
        """Return the table's own view, or that of an index."""
        if index_name is None:
            return self.primary
        if index_name not in self.indexes:
            raise dynamodb_values.Refusal(f"The table does not have the specified index: {index_name}")
        return self.indexes[index_name]

    def reads(self, began_at: int | None) -> Reads:
        """Return how a request that began at a sequence number, or now, sees the items."""
        return Reads(self.faults, self.sequence if began_at is None else began_at, self.sequence)

    def items(self) -> list[Item]:
        """Return the items that are there, by key."""
        partitions = sorted(self._partitions.items())
        latest = (rows[each].latest.item for _, rows in partitions for each in sorted(rows))
        return [item for item in latest if item is not None]

    def latest(self, key: Key) -> Item | None:
        """Return an item as it is."""
        record = self._partitions.get(key[0], {}).get(key[1])
        return record.latest.item if record else None

    def read(self, key: Key, reads: Reads, *, consistent: bool) -> Version:
        """Return an item as a request sees it."""
        record = self._partitions.get(key[0], {}).get(key[1])
        return reads.see(key, record, consistent=consistent) if record else ABSENT

    def store(self, key: Key, new: Item | None) -> None:
        """Write a version of an item."""
        record = self._partitions.setdefault(key[0], {}).setdefault(key[1], _Record())
        self.sequence += 1
        record.append(Version(new, self.sequence))
        self._index(key, record)

    def _index(self, key: Key, record: _Record) -> None:
        """Let the indexes know a record that has an entry in them now."""
        item = record.latest.item
        for name, view in self.indexes.items():
            if item is not None and view.holds(item):
                self._indexed[name][key] = record

    def load(self, items: Iterable[Item]) -> None:
        """Hold these items, in the form of `canonical`, and nothing else."""
        self.sequence = 0
        self._partitions = {}
        self._indexed = {name: {} for name in self.indexes}
        for item in items:
            hash_key, range_key = (dynamodb_values.sort_key(item[name]) for name in self.primary.key_names)
            record = self._partitions.setdefault(hash_key, {})[range_key] = _Record([Version(item)])
            self._index((hash_key, range_key), record)

    def entries(
        self,
        view: View,
        hash_value: dynamodb_values.AttributeValue,
        range_test: dynamodb_expressions.Test | None,
        reads: Reads,
        *,
        consistent: bool,
        descending: bool,
    ) -> Iterator[Version]:
        """Read the entries of one hash key whose range key passes a test in order, each when the page comes to it."""
        selects = range_test.accepts if range_test else lambda _key: True
        if view.index_name is None:
            hash_key = dynamodb_values.sort_key(hash_value)
            rows = self._partitions.get(hash_key, {})
            for range_key in sorted(filter(selects, rows), reverse=descending):
                version = self.read((hash_key, range_key), reads, consistent=consistent)
                if version.item is not None:
                    yield version
            return
        indexed = (
            record.missing(self.faults.index_lag(key, len(record.versions) - 1)).item
            for key, record in self._indexed[view.index_name].items()
        )
        entries = (view.entry(item) for item in indexed if item is not None)
        found = [
            entry
            for entry in entries
            if entry is not None
            and entry[view.hash_name] == hash_value
            and selects(dynamodb_values.sort_key(entry[view.range_name]))
        ]
        yield from map(Version, sorted(found, key=view.order, reverse=descending))

    def only_key_of(self, key: Item) -> Key:
        """Return the key that a request names by its key attributes alone."""
        if key.keys() != set(self.primary.key_names):
            raise dynamodb_values.Refusal("The number of conditions on the keys is invalid")
        return self.key_of(key)

    def key_of(self, item: Item) -> Key:
        """Return the key of an item, refusing one that DynamoDB refuses."""
        for name in self.primary.key_names:
            if name not in item:
                raise dynamodb_values.Refusal(f"One of the required keys was not given a value: {name}")
            self.check_key_value(
                name, dynamodb_values.canonical(item[name]), is_hash=name == self.primary.hash_name
            )
        return dynamodb_values.sort_key(item[self.primary.hash_name]), dynamodb_values.sort_key(
            item[self.primary.range_name]
        )

    def check_item(self, item: Item, too_large: str) -> None:
        """Refuse an item that is too large, or whose index keys are not what the index takes."""
        for view in self.indexes.values():
            for name in {view.hash_name, view.range_name} & item.keys():
                self.check_key_value(name, item[name], is_hash=name == view.hash_name)
        if dynamodb_values.item_bytes(item) > ITEM_BYTES_MAX:
            raise dynamodb_values.Refusal(too_large)

    def check_key_value(self, name: str, value: dynamodb_values.AttributeValue, *, is_hash: bool) -> None:
        """Refuse a value that a key attribute cannot have."""
        kind = dynamodb_values.kind_of(value)
        if kind != self._key_types[name]:
            raise dynamodb_values.Refusal(
                f"One or more parameter values were invalid: Type mismatch for key {name}"
            )
        if kind != "N" and not value[kind]:
            raise dynamodb_values.Refusal(
                f"The AttributeValue for a key attribute cannot contain an empty string value. Key: {name}"
            )
        size = dynamodb_values.value_bytes(value)
        if size > (HASH_KEY_BYTES_MAX if is_hash else RANGE_KEY_BYTES_MAX):
            raise dynamodb_values.Refusal(
                f"One or more parameter values were invalid: Size of key {name} has exceeded the size limit"
            )


def _key_names(schema: Schema) -> tuple[str, str]:
    by_type = {key["KeyType"]: key["AttributeName"] for key in schema["KeySchema"]}
    return by_type["HASH"], by_type["RANGE"]


def _index_view(index: Schema, table: View) -> View:
    if index["Projection"]["ProjectionType"] == "ALL":
        raise NotImplementedError("The model knows indexes that name what they project.")
    hash_name, range_name = _key_names(index)
    others = index["Projection"].get("NonKeyAttributes", ())
    projected = frozenset({hash_name, range_name, *table.key_names, *others})
    return View(hash_name, range_name, table.key_names, index["IndexName"], projected)
