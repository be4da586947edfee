"""How a Query or a Scan reads one page of the in-memory DynamoDB."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.support.dynamodb_expressions import (
    Condition,
    Logic,
    Path,
    Test,
    matches,
    project,
    top_level_names,
)
from tests.support.dynamodb_grammar import Placeholders, parse_condition, parse_projection
from tests.support.dynamodb_table import Reads, Table, Version, View, read_units, scan_order
from tests.support.dynamodb_values import AttributeValue, Content, Item, Refusal, sort_key

PAGE_BYTES_MAX = 1024 * 1024

Params: TypeAlias = Mapping[str, Any]
Response: TypeAlias = dict[str, Any]

# By what two keys sort by, which is of one kind: `check_key_value` has seen to that.
_RANGE_TESTS: Mapping[str, Callable[..., bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "BETWEEN": lambda key, lower, upper: lower <= key <= upper,
    "begins_with": lambda key, prefix: key.startswith(prefix),
}


@dataclass(frozen=True)
class Page:
    """An answer, and the read units it costs the table and an index."""

    response: Response
    units: float
    index_units: Mapping[str, float]


@dataclass(frozen=True)
class _PageShape:
    """What a Query or Scan keeps of the items it evaluates."""

    filter: Condition | None
    paths: list[Path] | None

    @classmethod
    def of(cls, params: Params, placeholders: Placeholders) -> _PageShape:
        select, projects = params.get("Select"), "ProjectionExpression" in params
        if projects and select not in {None, "SPECIFIC_ATTRIBUTES"}:
            raise Refusal("Cannot specify the ProjectionExpression with this Select")
        if select == "SPECIFIC_ATTRIBUTES" and not projects:
            raise Refusal("Must specify the ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
        condition = parse_condition(params, "FilterExpression", placeholders)
        paths = parse_projection(params, placeholders)
        placeholders.check_all_used()
        return cls(condition, paths)

    def check_view(self, view: View, select: str | None) -> None:
        if view.index_name and select == "ALL_ATTRIBUTES":
            raise Refusal("Select type ALL_ATTRIBUTES is not supported for this global secondary index")
        filtered = top_level_names(self.filter) if self.filter else frozenset()
        if filtered & {view.hash_name, view.range_name}:
            raise Refusal("Filter Expression can only contain non-primary key attributes")
        named = filtered | {path.names[0] for path in self.paths or ()}
        if view.projected is not None and not named <= view.projected:
            raise Refusal(
                f"Global secondary index {view.index_name} does not project {sorted(named - view.projected)}"
            )


def query_page(table: Table, params: Params, reads: Reads) -> Page:
    """Answer a Query."""
    view = table.view(params.get("IndexName"))
    consistent = params.get("ConsistentRead", False)
    if view.index_name and consistent:
        raise Refusal("Consistent reads are not supported on global secondary indexes")
    placeholders = Placeholders.of(
        params, "KeyConditionExpression", "FilterExpression", "ProjectionExpression"
    )
    condition = parse_condition(params, "KeyConditionExpression", placeholders)
    if condition is None:
        raise Refusal("KeyConditionExpression must be specified in the request")
    hash_value, range_test = _key_condition(table, condition, view)
    shape = _PageShape.of(params, placeholders)
    shape.check_view(view, params.get("Select"))
    descending = not params.get("ScanIndexForward", True)
    start = _start_key(table, params, view, hash_value, range_test)
    selects = _selection(range_test)
    entries = (
        entry
        for entry in table.entries(
            view, hash_value, selects, reads, consistent=consistent, descending=descending
        )
        if start is None or _is_after(view.order(entry.item or {}), view.order(start), descending=descending)
    )
    return _page(table, params, shape, view, entries)


def scan_page(table: Table, params: Params, reads: Reads) -> Page:
    """Answer a Scan of the table."""
    if "IndexName" in params:
        raise NotImplementedError("The model does not know scans of an index.")
    shape = _PageShape.of(params, Placeholders.of(params, "FilterExpression", "ProjectionExpression"))
    start = params.get("ExclusiveStartKey")
    after = scan_order(table.only_key_of(start)) if start else None
    consistent = params.get("ConsistentRead", False)
    items = (
        table.read(key, reads, consistent=consistent)
        for key in table.known_keys()
        if after is None or scan_order(key) > after
    )
    return _page(table, params, shape, table.primary, (each for each in items if each.item is not None))


def _page(table: Table, params: Params, shape: _PageShape, view: View, entries: Iterable[Version]) -> Page:
    """Evaluate entries up to the limit or the size of a page, and answer with those that pass the filter."""
    evaluated: list[Item] = []
    evaluated_bytes = 0
    response: Response = {}
    for version in entries:
        entry = version.item or {}
        evaluated.append(entry)
        evaluated_bytes += version.size
        if len(evaluated) == params.get("Limit") or evaluated_bytes >= PAGE_BYTES_MAX:
            names = dict.fromkeys((view.hash_name, view.range_name, *table.primary.key_names))
            response["LastEvaluatedKey"] = {name: entry[name] for name in names}
            break
    kept = [entry for entry in evaluated if shape.filter is None or matches(shape.filter, entry)]
    response |= {"Count": len(kept), "ScannedCount": len(evaluated)}
    if params.get("Select") != "COUNT":
        response["Items"] = kept if shape.paths is None else [project(shape.paths, entry) for entry in kept]
    units = read_units(evaluated_bytes, consistent=params.get("ConsistentRead", False))
    if view.index_name:
        return Page(response, 0.0, {view.index_name: units})
    return Page(response, units, {})


def _key_condition(table: Table, condition: Condition, view: View) -> tuple[AttributeValue, Test | None]:
    """Split a key condition into the value of the hash key and the test of the range key."""
    parts = condition.parts if isinstance(condition, Logic) else (condition,)
    tests = [part for part in parts if isinstance(part, Test)]
    if len(tests) != len(parts) or (isinstance(condition, Logic) and condition.operator != "AND"):
        raise Refusal("Invalid operator used in KeyConditionExpression")
    by_name: dict[str, Test] = {}
    for test in tests:
        path, *literals = test.operands
        if not isinstance(path, Path) or len(path.names) > 1:
            raise NotImplementedError("The model wants the key on the left of each key condition.")
        name = path.names[0]
        if name in by_name:
            raise Refusal("KeyConditionExpressions must only contain one condition per key")
        if test.operator not in _RANGE_TESTS:
            raise Refusal(f"Invalid operator used in KeyConditionExpression: {test.operator}")
        if name in {view.hash_name, view.range_name}:
            for literal in literals:
                table.check_key_value(name, literal.find({}) or {}, is_hash=name == view.hash_name)
        by_name[name] = test
    if not {view.hash_name} <= by_name.keys() <= {view.hash_name, view.range_name}:
        raise Refusal("Query condition missed key schema element")
    if by_name[view.hash_name].operator != "=":
        raise Refusal("Query key condition not supported")
    return by_name[view.hash_name].operands[1].find({}) or {}, by_name.get(view.range_name)


def _selection(range_test: Test | None) -> Callable[[Content], bool]:
    """Return what tells, by what a range key sorts by, whether the test of the range key holds of it."""
    if range_test is None:
        return lambda _key: True
    bounds = [sort_key(operand.find({}) or {}) for operand in range_test.operands[1:]]
    test = _RANGE_TESTS[range_test.operator]
    return lambda key: test(key, *bounds)


def _start_key(
    table: Table, params: Params, view: View, hash_value: AttributeValue, range_test: Test | None
) -> Item | None:
    start: Item | None = params.get("ExclusiveStartKey")
    if start is None:
        return None
    if start.keys() != {view.hash_name, view.range_name, *table.primary.key_names}:
        raise Refusal("The provided starting key is invalid")
    if start[view.hash_name] != hash_value or (range_test and not matches(range_test, start)):
        raise Refusal("The provided starting key does not match the range key predicate")
    return start


def _is_after(order: tuple[Content, ...], start: tuple[Content, ...], *, descending: bool) -> bool:
    return order < start if descending else order > start
