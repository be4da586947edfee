"""DynamoDB's expressions as far as the package writes them: conditions, key conditions, updates and projections.

Attributes are named by placeholders at the top level of an item, and an attribute is compared with a value. What else
DynamoDB knows is not modelled, and fails loudly.
"""

from __future__ import annotations

import functools
import marshal
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from tests.support.dynamodb_values import (
    MARSHAL_WITHOUT_REFERENCES,
    SET_KINDS,
    SORTABLE_KINDS,
    AttributeValue,
    Content,
    Item,
    Refusal,
    canonical,
    kind_of,
    sort_key,
)

EXPRESSION_BYTES_MAX = 4096

_T = TypeVar("_T")

_TOKEN = re.compile(r"\s*(?:([#:]?\w+)|(<=|>=|[=<>(),](?!>)))")
# Of what values sort by.
_COMPARISONS: Mapping[str, Callable[..., bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "BETWEEN": lambda key, lower, upper: lower <= key <= upper,
    "begins_with": lambda key, prefix: key.startswith(prefix),
}
_NOT_MODELLED = frozenset({"NOT", "IN", "DELETE", "attribute_type", "contains", "size", "list_append"})
# What expressions are made of once there is one space between their tokens.
_TESTS = [
    re.compile(each)
    for each in (
        r"(?P<operator>attribute_exists|attribute_not_exists) \( (?P<name>#\w+) \)",
        r"(?P<operator>begins_with) \( (?P<name>#\w+) , (?P<values>:\w+) \)",
        r"(?P<name>#\w+) (?P<operator>BETWEEN) (?P<values>:\w+ AND :\w+)",
        r"(?P<name>#\w+) (?P<operator><=|>=|[=<>]) (?P<values>:\w+)",
    )
]
_SECTION = re.compile(r"(SET|REMOVE|ADD) (.+?)(?: (?=SET |REMOVE |ADD )|$)")
_CLAUSES = {
    "SET": r"(?P<name>#\w+) = (?:if_not_exists \( (?P<unless>#\w+) , (?P<other>:\w+) \)|(?P<value>:\w+))",
    "REMOVE": r"(?P<name>#\w+)",
    "ADD": r"(?P<name>#\w+) (?P<value>:\w+)",
}


class Placeholders:
    """The names and values of one request, and which of them its expressions used."""

    def __init__(self, params: Mapping[str, Any], *expressions: str) -> None:
        """Take those of a request, which may have some only if it has one of the given expressions."""
        self._names = params.get("ExpressionAttributeNames", {})
        given = params.get("ExpressionAttributeValues", {})
        self._values = {token: canonical(value) for token, value in given.items()}
        self._unused = {*self._names, *given}
        for name in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
            if name in params and not any(expression in params for expression in expressions):
                raise Refusal(f"{name} can only be specified when using expressions")
            if name in params and not params[name]:
                raise Refusal(f"{name} must not be empty")

    def used_in(self, text: str) -> dict[str, Any]:
        """Return what the placeholders in an expression stand for."""
        found: dict[str, Any] = {}
        for token in _tokens(text):
            if token[0] in "#:":
                known = self._names if token[0] == "#" else self._values
                if token not in known:
                    raise Refusal(f"An expression attribute used in expression is not defined: {token}")
                self._unused.discard(token)
                found[token] = known[token]
        return found

    def check_all_used(self) -> None:
        """Refuse the request if it defines a name or a value that no expression used."""
        if self._unused:
            raise Refusal(
                f"Value provided in ExpressionAttribute* unused in expressions: {sorted(self._unused)}"
            )


@dataclass(frozen=True)
class Test:
    """One comparison of an attribute, or function call, that is true or false of an item."""

    __test__ = False  # The name is the grammar's; pytest must not collect it.

    operator: str
    name: str
    values: Sequence[AttributeValue]

    def holds(self, item: Item) -> bool:
        """Tell whether it is true of an item; a missing item is an empty one."""
        found = item.get(self.name)
        if self.operator == "attribute_not_exists":
            return found is None
        if self.operator == "attribute_exists":
            return found is not None
        if self.operator == "=":
            return found == self.values[0]
        # Values of different kinds have no order.
        return (
            found is not None and kind_of(found) == kind_of(self.values[0]) and self.accepts(sort_key(found))
        )

    def accepts(self, key: Content) -> bool:
        """Tell whether a comparison is true of what an attribute of the values' kind sorts by."""
        return _COMPARISONS[self.operator](key, *self._bounds)

    @functools.cached_property
    def _bounds(self) -> Sequence[Content]:
        return [sort_key(value) for value in self.values]


@dataclass(frozen=True)
class Logic:
    """Conditions joined by AND or OR."""

    operator: str
    parts: Sequence[Condition]

    def holds(self, item: Item) -> bool:
        """Tell whether they are true of an item."""
        outcomes = (part.holds(item) for part in self.parts)
        return all(outcomes) if self.operator == "AND" else any(outcomes)


Condition: TypeAlias = Test | Logic


@dataclass
class Update:
    """An UpdateExpression: by the attribute's name, what is set, what is removed and what is added to a set."""

    set: dict[str, Source] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    added: dict[str, AttributeValue] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Every attribute that it changes."""
        return [*self.set, *self.removed, *self.added]

    def apply(self, item: Item) -> Item:
        """Return the item that it makes of another; every operand is read from the item as it was."""
        changed = {name: value for name, value in item.items() if name not in self.removed}
        for name, source in self.set.items():
            changed[name] = source.value if source.unless is None else item.get(source.unless, source.value)
        for name, value in self.added.items():
            old, kind = item.get(name, value), kind_of(value)
            if kind_of(old) != kind:
                raise Refusal("An operand in the update expression has an incorrect data type")
            changed[name] = canonical({kind: list({*old[kind], *value[kind]})})
        return changed


@dataclass(frozen=True)
class Source:
    """What an attribute is set to: a value, unless some attribute is there, which is then taken."""

    value: AttributeValue
    unless: str | None = None


class _ConditionParser:
    """A recursive-descent parser for conditions."""

    def __init__(self, text: str, placeholders: Mapping[str, Any]) -> None:
        """Take a condition, and what its placeholders stand for."""
        self._placeholders = placeholders
        self._text = text
        self._position = 0
        self._parenthesised: Condition | None = None

    def parse(self) -> Condition:
        """Parse all of it."""
        parsed = self._joined("OR")
        if self._position < len(self._text):
            raise _syntax_error(self._text[self._position :])
        return parsed

    def _accept(self, token: str) -> bool:
        found = f"{self._text} ".startswith(f"{token} ", self._position)
        self._position += (len(token) + 1) * found
        return found

    def _joined(self, joint: str) -> Condition:
        """Parse conditions joined by OR, each of which is joined by AND."""
        parse = functools.partial(self._joined, "AND") if joint == "OR" else self._one
        parts = [parse()]
        while self._accept(joint):
            parts.append(parse())
        return parts[0] if len(parts) == 1 else Logic(joint, parts)

    def _one(self) -> Condition:
        if self._accept("("):
            inner = self._joined("OR")
            if not self._accept(")"):
                raise _syntax_error(self._text[self._position :])
            if inner is self._parenthesised:
                raise Refusal("Invalid expression: The expression has redundant parentheses")
            self._parenthesised = inner
            return inner
        for each in _TESTS:
            if match := each.match(self._text, self._position):
                self._position = match.end() + 1
                return self._test(**match.groupdict())
        raise _syntax_error(self._text[self._position :])

    def _test(self, operator: str, name: str, values: str = "") -> Test:
        operands = [self._placeholders[each] for each in values.split(" AND ") if each]
        if operator == "begins_with":
            _refuse_kinds(operands, {"S", "B"})
        elif operator != "=":
            _refuse_kinds(operands, SORTABLE_KINDS)
        if operator == "BETWEEN":
            lower, upper = operands
            if kind_of(lower) != kind_of(upper) or sort_key(lower) > sort_key(upper):
                raise Refusal(
                    "Invalid expression: The BETWEEN operator requires upper bound to be at least the lower bound"
                )
        return Test(operator, self._placeholders[name], operands)


def _condition(text: str, placeholders: Mapping[str, Any]) -> Condition:
    return _ConditionParser(text, placeholders).parse()


def _projection(text: str, placeholders: Mapping[str, Any]) -> list[str]:
    names = [placeholders[each["name"]] for each in _clauses("REMOVE", text)]
    _refuse_overlaps(names)
    return names


def _update(text: str, placeholders: Mapping[str, Any]) -> Update:
    sections = _SECTION.findall(text)
    found = {section: _clauses(section, clauses) for section, clauses in sections}
    if len(found) < len(sections) or " ".join(map(" ".join, sections)) != text:
        raise _syntax_error(text)
    names = [placeholders[each["name"]] for clauses in found.values() for each in clauses]
    _refuse_overlaps(names)
    update = Update(removed=[placeholders[each["name"]] for each in found.get("REMOVE", ())])
    for each in found.get("SET", ()):
        value = placeholders[each["value"] or each["other"]]
        update.set[placeholders[each["name"]]] = Source(value, placeholders.get(each["unless"]))
    for each in found.get("ADD", ()):
        value = placeholders[each["value"]]
        if kind_of(value) == "N":
            raise NotImplementedError("The model does not know sums of numbers.")
        _refuse_kinds([value], SET_KINDS)
        update.added[placeholders[each["name"]]] = value
    return update


def _clauses(section: str, text: str) -> list[dict[str, Any]]:
    """Return the clauses of a section, which commas separate."""
    clauses = list(re.finditer(_CLAUSES[section], text))
    if " , ".join(each[0] for each in clauses) != text:
        raise _syntax_error(text)
    return [each.groupdict() for each in clauses]


def parse_condition(params: Mapping[str, Any], name: str, placeholders: Placeholders) -> Condition | None:
    """Parse a request's condition of the given name, if it has one."""
    return _parsed(_condition, params[name], placeholders) if name in params else None


def parse_projection(text: str, placeholders: Placeholders) -> list[str]:
    """Parse a ProjectionExpression: the names of the attributes."""
    return _parsed(_projection, text, placeholders)


def parse_update(text: str, placeholders: Placeholders) -> Update:
    """Parse an UpdateExpression."""
    return _parsed(_update, text, placeholders)


def _parsed(parse: Callable[[str, Mapping[str, Any]], _T], text: str, placeholders: Placeholders) -> _T:
    # Written as bytes, since values cannot be hashed.
    used = marshal.dumps(placeholders.used_in(text), MARSHAL_WITHOUT_REFERENCES)
    parsed: _T = _parse(parse, text, used)
    return parsed


# The same few expressions come over and over, and most of them with the same names and values.
@functools.lru_cache(maxsize=1024)
def _parse(parse: Callable[[str, Mapping[str, Any]], Any], text: str, placeholders: bytes) -> Any:
    return parse(" ".join(_tokens(text)), marshal.loads(placeholders))  # noqa: S302 - written just now.


@functools.lru_cache(maxsize=1024)
def _tokens(text: str) -> Sequence[str]:
    if not text.strip():
        raise Refusal("Invalid expression: The expression can not be empty")
    if len(text.encode()) > EXPRESSION_BYTES_MAX:
        raise Refusal("Invalid expression: Expression size has exceeded the maximum allowed size")
    tokens, position, end = [], 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotImplementedError(f"The model does not know {text[position:]!r}.")
        tokens.append(match[1] or match[2])
        position = match.end()
    if not _NOT_MODELLED.isdisjoint(tokens):
        raise NotImplementedError(f"The model does not know {sorted(_NOT_MODELLED & {*tokens})}.")
    return tokens


def _syntax_error(rest: str) -> Refusal:
    return Refusal(f"Invalid expression: Syntax error at {rest or 'its end'}")


def _refuse_overlaps(names: Sequence[str]) -> None:
    if len({*names}) < len(names):
        raise Refusal("Invalid expression: Two document paths overlap with each other")


def _refuse_kinds(values: Sequence[AttributeValue], kinds: Collection[str]) -> None:
    if any(kind_of(value) not in kinds for value in values):
        raise Refusal("Invalid expression: Incorrect operand type for operator or function")
