"""What DynamoDB's expressions mean: evaluate conditions, apply updates, project items.

This module knows nothing of how expressions are written (`dynamodb_grammar`), of tables or of requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.support.dynamodb_values import (
    SET_KINDS,
    SORTABLE_KINDS,
    AttributeValue,
    Item,
    Refusal,
    add_numbers,
    canonical,
    copied,
    kind_of,
    sort_key,
)

ORDERINGS: Mapping[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_WRONG_OPERAND = "An operand in the update expression has an incorrect data type"
_INVALID_PATH = "The document path provided in the update expression is invalid for update"


@dataclass(frozen=True)
class Path:
    """The place of a value in an item: an attribute, or an entry of a map in it."""

    names: tuple[str, ...]

    def find(self, item: Item) -> AttributeValue | None:
        """Return the value at this path, or None where the item has none."""
        value: AttributeValue | None = {"M": item}
        for name in self.names:
            value = value.get("M", {}).get(name) if value else None
        return value

    def overlaps(self, other: Path) -> bool:
        """Tell whether one of two paths lies within the other."""
        shared = min(len(self.names), len(other.names))
        return self.names[:shared] == other.names[:shared]


@dataclass(frozen=True)
class Literal:
    """A value given in ExpressionAttributeValues."""

    value: AttributeValue

    def find(self, _item: Item) -> AttributeValue | None:
        """Return the value, whatever the item."""
        return self.value


@dataclass(frozen=True)
class Size:
    """The `size` function."""

    of: Path | Literal

    def find(self, item: Item) -> AttributeValue | None:
        """Return the size as a number; None where the value is missing or has no size."""
        value = self.of.find(item)
        if value is None or kind_of(value) in {"N", "BOOL", "NULL"}:
            return None
        return {"N": str(len(value[kind_of(value)]))}


Operand: TypeAlias = Path | Literal | Size


@dataclass(frozen=True)
class Test:
    """One comparison or function call that is true or false of an item."""

    __test__ = False  # The name is the grammar's; pytest must not collect it.

    operator: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Logic:
    """Conditions joined by AND or OR, or one negated by NOT."""

    operator: str
    parts: tuple[Condition, ...]


Condition: TypeAlias = Test | Logic


@dataclass(frozen=True)
class Computed:
    """A value that an update computes from the item as it was: `+`, `-`, if_not_exists or list_append."""

    operator: str
    operands: tuple[Source, ...]


Source: TypeAlias = Path | Literal | Computed


@dataclass
class Update:
    """A parsed UpdateExpression."""

    assignments: list[tuple[Path, Source]] = field(default_factory=list)
    removals: list[Path] = field(default_factory=list)
    additions: list[tuple[Path, AttributeValue]] = field(default_factory=list)
    deletions: list[tuple[Path, AttributeValue]] = field(default_factory=list)

    def paths(self) -> list[Path]:
        """Return every path that the update changes."""
        changed = [*self.assignments, *self.additions, *self.deletions]
        return [*self.removals, *(path for path, _ in changed)]


def matches(condition: Condition, item: Item) -> bool:
    """Evaluate a condition against an item; a missing item is an empty one."""
    if isinstance(condition, Test):
        return _TESTS[condition.operator](*(operand.find(item) for operand in condition.operands))
    outcomes = (matches(part, item) for part in condition.parts)
    if condition.operator == "NOT":
        return not next(outcomes)
    return all(outcomes) if condition.operator == "AND" else any(outcomes)


def top_level_names(condition: Condition) -> frozenset[str]:
    """Return the attributes of which a condition looks at all or a part."""
    if isinstance(condition, Logic):
        return frozenset().union(*(top_level_names(part) for part in condition.parts))
    plain = (operand.of if isinstance(operand, Size) else operand for operand in condition.operands)
    return frozenset(operand.names[0] for operand in plain if isinstance(operand, Path))


def project(paths: list[Path], item: Item) -> Item:
    """Return the parts of an item that a projection names."""
    projected: Item = {}
    for path in paths:
        *outer, name = path.names
        # Most paths are an attribute, which needs no search.
        value = path.find(item) if outer else item.get(name)
        if value is None:
            continue
        target = projected
        for each in outer:
            target = target.setdefault(each, {"M": {}})["M"]
        target[name] = value
    return projected


def apply_update(update: Update, item: Item) -> Item:
    """Return the item that an update makes of another; every operand is read from the item as it was."""
    changed: Item = copied(item)
    assigned = [(path, _computed(source, item)) for path, source in update.assignments]
    for path in update.removals:
        _parent_of(path, changed).pop(path.names[-1], None)
    for path, value in assigned:
        _parent_of(path, changed)[path.names[-1]] = value
    for path, value in update.additions:
        _parent_of(path, changed)[path.names[-1]] = _sum(path.find(item), value)
    for path, value in update.deletions:
        _delete_members(path, value, changed)
    return changed


def ordered(operator: str) -> Callable[[AttributeValue | None, AttributeValue | None], bool]:
    """Return the comparison of two values; values of different kinds have no order."""

    def compare(left: AttributeValue | None, right: AttributeValue | None) -> bool:
        if (
            left is None
            or right is None
            or kind_of(left) != kind_of(right)
            or kind_of(left) not in SORTABLE_KINDS
        ):
            return False
        one, other = sort_key(left), sort_key(right)
        return ORDERINGS[operator]((one > other) - (one < other))

    return compare


def _equal(left: AttributeValue | None, right: AttributeValue | None) -> bool:
    return left is not None and left == right


def _between(
    value: AttributeValue | None, lower: AttributeValue | None, upper: AttributeValue | None
) -> bool:
    return ordered(">=")(value, lower) and ordered("<=")(value, upper)


def _begins_with(value: AttributeValue | None, prefix: AttributeValue | None) -> bool:
    if (
        value is None
        or prefix is None
        or kind_of(value) != kind_of(prefix)
        or kind_of(value) not in {"S", "B"}
    ):
        return False
    return bool(value[kind_of(value)].startswith(prefix[kind_of(prefix)]))


def _contains(value: AttributeValue | None, element: AttributeValue | None) -> bool:
    if value is None or element is None:
        return False
    kind, wanted = kind_of(value), kind_of(element)
    if kind == "L":
        return element in value["L"]
    if (kind == wanted and kind in {"S", "B"}) or SET_KINDS.get(kind) == wanted:
        return element[wanted] in value[kind]
    return False


_TESTS: Mapping[str, Callable[..., bool]] = {
    "=": _equal,
    # A missing attribute differs from every value, so this is not "present and different".
    "<>": lambda left, right: not _equal(left, right),
    **{operator: ordered(operator) for operator in ORDERINGS},
    "BETWEEN": _between,
    "IN": lambda value, *choices: any(_equal(value, choice) for choice in choices),
    "attribute_exists": lambda value: value is not None,
    "attribute_not_exists": lambda value: value is None,
    "begins_with": _begins_with,
    "contains": _contains,
}


def _computed(source: Source, item: Item) -> AttributeValue:
    if not isinstance(source, Computed):
        value = source.find(item)
        if value is None:
            raise Refusal("The provided expression refers to an attribute that does not exist in the item")
        return value
    first, second = source.operands
    if source.operator == "if_not_exists":
        present = first.find(item) if isinstance(first, Path) else None
        return _computed(second, item) if present is None else present
    left, right = _computed(first, item), _computed(second, item)
    wanted = "L" if source.operator == "list_append" else "N"
    if {kind_of(left), kind_of(right)} != {wanted}:
        raise Refusal(_WRONG_OPERAND)
    if wanted == "L":
        return {"L": [*left["L"], *right["L"]]}
    return add_numbers(left, right, sign=1 if source.operator == "+" else -1)


def _parent_of(path: Path, item: Item) -> Item:
    """Return the map that holds the last name of a path; DynamoDB never creates one on the way."""
    if len(path.names) == 1:
        return item
    parent = Path(path.names[:-1]).find(item)
    if parent is None or "M" not in parent:
        raise Refusal(_INVALID_PATH)
    entries: Item = parent["M"]
    return entries


def _sum(old: AttributeValue | None, value: AttributeValue) -> AttributeValue:
    if old is None:
        return value
    kind = kind_of(value)
    if kind_of(old) != kind:
        raise Refusal(_WRONG_OPERAND)
    return add_numbers(old, value) if kind == "N" else canonical({kind: list({*old[kind], *value[kind]})})


def _delete_members(path: Path, value: AttributeValue, item: Item) -> None:
    """Take members out of a set; a set that has none left is no attribute any more."""
    parent, name, kind = _parent_of(path, item), path.names[-1], kind_of(value)
    if name not in parent:
        return
    if kind_of(parent[name]) != kind:
        raise Refusal(_WRONG_OPERAND)
    kept = [member for member in parent[name][kind] if member not in value[kind]]
    if kept:
        parent[name] = {kind: kept}
    else:
        del parent[name]
