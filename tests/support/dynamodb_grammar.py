"""How DynamoDB's expressions are written: a parser for the four kinds of expression.

List indexes in document paths are not modelled: the saver stores no list that it addresses by index, and an
expression that uses one fails loudly.
"""

from __future__ import annotations

import functools
import marshal
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeVar

from tests.support.dynamodb_expressions import (
    ORDERINGS,
    Computed,
    Condition,
    Literal,
    Logic,
    Operand,
    Path,
    Size,
    Source,
    Test,
    Update,
    ordered,
)
from tests.support.dynamodb_values import (
    MARSHAL_WITHOUT_REFERENCES,
    SET_KINDS,
    SORTABLE_KINDS,
    AttributeValue,
    Refusal,
    canonical,
    kind_of,
)

EXPRESSION_BYTES_MAX = 4096

_Element = TypeVar("_Element")
_Parsed = TypeVar("_Parsed")

_TOKEN = re.compile(r"\s*(?:([#:]?\w+)|(<>|<=|>=|[=<>()\[\].,+-]))")
_COMPARATORS = frozenset({"=", "<>", *ORDERINGS})
_PATH_FUNCTIONS = frozenset({"attribute_exists", "attribute_not_exists"})
_FUNCTION_ARITY = {"attribute_exists": 1, "attribute_not_exists": 1, "begins_with": 2, "contains": 2}
_UPDATE_SECTIONS = ("SET", "REMOVE", "ADD", "DELETE")


class Placeholders:
    """The names and values of one request, and which of them its expressions used."""

    def __init__(self, names: Mapping[str, str], values: Mapping[str, AttributeValue]) -> None:
        """Take ExpressionAttributeNames and ExpressionAttributeValues."""
        self._names = names
        self._values = {key: canonical(value) for key, value in values.items()}
        self._unused = {*names, *values}

    @classmethod
    def of(cls, params: Mapping[str, Any], *expressions: str) -> Placeholders:
        """Take those of a request, which may have some only if it has one of the given expressions."""
        given = [name for name in ("ExpressionAttributeNames", "ExpressionAttributeValues") if name in params]
        if given and not any(expression in params for expression in expressions):
            raise Refusal(f"{given[0]} can only be specified when using expressions")
        for name in given:
            if not params[name]:
                raise Refusal(f"{name} must not be empty")
        return cls(params.get("ExpressionAttributeNames", {}), params.get("ExpressionAttributeValues", {}))

    def name(self, token: str) -> str:
        """Return the attribute that a token of a path stands for."""
        if not token.startswith("#"):
            return token
        if token not in self._names:
            raise Refusal(f"An expression attribute name used in the document path is not defined: {token}")
        self._unused.discard(token)
        return self._names[token]

    def value(self, token: str) -> AttributeValue:
        """Return the value that a `:token` stands for."""
        if token not in self._values:
            raise Refusal(f"An expression attribute value used in expression is not defined: {token}")
        self._unused.discard(token)
        return self._values[token]

    def check_all_used(self) -> None:
        """Refuse the request if it defines a name or a value that no expression used."""
        if self._unused:
            raise Refusal(
                f"Value provided in ExpressionAttribute* unused in expressions: {sorted(self._unused)}"
            )


class Parser:
    """A recursive-descent parser for the four kinds of expression."""

    def __init__(self, text: str, placeholders: Placeholders) -> None:
        """Split the text into tokens."""
        if not text.strip():
            raise Refusal("Invalid expression: The expression can not be empty")
        if len(text.encode()) > EXPRESSION_BYTES_MAX:
            raise Refusal("Invalid expression: Expression size has exceeded the maximum allowed size")
        self._placeholders = placeholders
        self._tokens = _tokens(text)
        self._position = 0
        self._parenthesised: Condition | None = None

    def condition(self) -> Condition:
        """Parse a ConditionExpression, FilterExpression or KeyConditionExpression."""
        parsed = self._disjunction()
        self._expect_end()
        return parsed

    def projection(self) -> list[Path]:
        """Parse a ProjectionExpression."""
        paths = self._list(self._path)
        self._expect_end()
        _refuse_overlaps(paths)
        return paths

    def update(self) -> Update:
        """Parse an UpdateExpression."""
        update = Update()
        seen: set[str] = set()
        while self._position < len(self._tokens):
            section = self._next().upper()
            if section not in _UPDATE_SECTIONS or section in seen:
                raise _syntax_error(section)
            seen.add(section)
            if section == "SET":
                update.assignments = self._list(self._assignment)
            elif section == "REMOVE":
                update.removals = self._list(self._path)
            elif section == "ADD":
                update.additions = self._list(lambda: self._path_and_value({"N", *SET_KINDS}))
            else:
                update.deletions = self._list(lambda: self._path_and_value(set(SET_KINDS)))
        _refuse_overlaps(update.paths())
        return update

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._position += 1
        return token

    def _accept(self, *wanted: str) -> bool:
        found = self._peek().upper() in wanted
        self._position += found
        return found

    def _expect(self, wanted: str) -> None:
        if not self._accept(wanted):
            raise _syntax_error(self._peek())

    def _expect_end(self) -> None:
        if self._position < len(self._tokens):
            raise _syntax_error(self._peek())

    def _list(self, element: Callable[[], _Element]) -> list[_Element]:
        elements = [element()]
        while self._accept(","):
            elements.append(element())
        return elements

    def _disjunction(self) -> Condition:
        parts = [self._conjunction()]
        while self._accept("OR"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Logic("OR", tuple(parts))

    def _conjunction(self) -> Condition:
        parts = [self._negation()]
        while self._accept("AND"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else Logic("AND", tuple(parts))

    def _negation(self) -> Condition:
        if self._accept("NOT"):
            return Logic("NOT", (self._negation(),))
        if self._accept("("):
            return self._in_parentheses()
        if self._peek() in _FUNCTION_ARITY:
            return self._function()
        return self._comparison()

    def _in_parentheses(self) -> Condition:
        inner = self._disjunction()
        self._expect(")")
        if inner is self._parenthesised:
            raise Refusal("Invalid expression: The expression has redundant parentheses")
        self._parenthesised = inner
        return inner

    def _function(self) -> Test:
        name = self._next()
        self._expect("(")
        operands = tuple(self._list(self._operand))
        self._expect(")")
        if len(operands) != _FUNCTION_ARITY[name]:
            raise Refusal(
                f"Invalid expression: Incorrect number of operands for operator or function: {name}"
            )
        if name in _PATH_FUNCTIONS and not isinstance(operands[0], Path):
            raise Refusal(f"Invalid expression: Operator or function requires a document path: {name}")
        if name == "begins_with":
            _refuse_literals(name, operands, frozenset({"S", "B"}))
        return Test(name, operands)

    def _comparison(self) -> Test:
        left = self._operand()
        operator = self._next().upper()
        if operator == "BETWEEN":
            lower = self._operand()
            self._expect("AND")
            operands: tuple[Operand, ...] = (left, lower, self._operand())
            _refuse_empty_range(operands)
        elif operator == "IN":
            self._expect("(")
            operands = (left, *self._list(self._operand))
            self._expect(")")
        elif operator in _COMPARATORS:
            operands = (left, self._operand())
        else:
            raise _syntax_error(operator)
        if operator in ORDERINGS or operator == "BETWEEN":
            _refuse_literals(operator, operands, SORTABLE_KINDS)
        if isinstance(left, Path) and left in operands[1:]:
            raise Refusal(
                "Invalid expression: The first operand must be distinct from the remaining operands"
            )
        return Test(operator, operands)

    def _operand(self) -> Operand:
        if self._peek() == "size":
            self._next()
            self._expect("(")
            operand = self._path_or_literal()
            self._expect(")")
            return Size(operand)
        return self._path_or_literal()

    def _path_or_literal(self) -> Path | Literal:
        return self._literal() if self._peek().startswith(":") else self._path()

    def _literal(self) -> Literal:
        token = self._next()
        if not token.startswith(":"):
            raise _syntax_error(token)
        return Literal(self._placeholders.value(token))

    def _path(self) -> Path:
        names = [self._path_name()]
        while self._accept("."):
            names.append(self._path_name())
        if self._peek() == "[":
            raise NotImplementedError("The model does not know list indexes in document paths.")
        return Path(tuple(names))

    def _path_name(self) -> str:
        token = self._next()
        if not re.fullmatch(r"#\w+|[A-Za-z]\w*", token):
            raise _syntax_error(token)
        if self._peek() == "(":
            raise Refusal(f"Invalid expression: Invalid function name; function: {token}")
        return self._placeholders.name(token)

    def _assignment(self) -> tuple[Path, Source]:
        path = self._path()
        self._expect("=")
        source = self._source()
        if self._peek() in {"+", "-"}:
            source = _computed(self._next(), (source, self._source()))
        return path, source

    def _source(self) -> Source:
        if self._peek() not in {"if_not_exists", "list_append"}:
            return self._path_or_literal()
        name = self._next()
        self._expect("(")
        first = self._path() if name == "if_not_exists" else self._source()
        self._expect(",")
        second = self._source()
        self._expect(")")
        return _computed(name, (first, second))

    def _path_and_value(self, kinds: set[str]) -> tuple[Path, AttributeValue]:
        path, value = self._path(), self._literal().value
        if kind_of(value) not in kinds:
            raise _wrong_operand("ADD or DELETE")
        return path, value


def parse_condition(params: Mapping[str, Any], name: str, placeholders: Placeholders) -> Condition | None:
    """Parse a request's expression of the given name, if it has one."""
    return _parsed(Parser.condition, params[name], placeholders) if name in params else None


def parse_projection(params: Mapping[str, Any], placeholders: Placeholders) -> list[Path] | None:
    """Parse a request's ProjectionExpression, if it has one."""
    if "ProjectionExpression" not in params:
        return None
    return _parsed(Parser.projection, params["ProjectionExpression"], placeholders)


def parse_update(text: str, placeholders: Placeholders) -> Update:
    """Parse an UpdateExpression."""
    return _parsed(Parser.update, text, placeholders)


def _parsed(parse: Callable[[Parser], _Parsed], text: str, placeholders: Placeholders) -> _Parsed:
    tokens = _tokens(text)
    names = {each: placeholders.name(each) for each in tokens if each[0] == "#"}
    values = {each: placeholders.value(each) for each in tokens if each[0] == ":"}
    # Written as bytes, since values cannot be hashed.
    parsed: _Parsed = _parse(parse, text, marshal.dumps((names, values), MARSHAL_WITHOUT_REFERENCES))
    return parsed


# The same few expressions come over and over, and most of them with the same names and values.
@functools.lru_cache(maxsize=1024)
def _parse(parse: Callable[[Parser], Any], text: str, placeholders: bytes) -> Any:
    return parse(Parser(text, Placeholders(*marshal.loads(placeholders))))  # noqa: S302 - written just now.


@functools.lru_cache(maxsize=1024)
def _tokens(text: str) -> Sequence[str]:
    tokens, position, end = [], 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise _syntax_error(text[position:])
        tokens.append(match[1] or match[2])
        position = match.end()
    return tokens


def _syntax_error(token: str) -> Refusal:
    return Refusal(f"Invalid expression: Syntax error; token: {token or '<EOF>'}")


def _wrong_operand(operator: str) -> Refusal:
    return Refusal(f"Invalid expression: Incorrect operand type for operator or function: {operator}")


def _refuse_overlaps(paths: list[Path]) -> None:
    if any(one.overlaps(other) for one, other in combinations(paths, 2)):
        raise Refusal("Invalid expression: Two document paths overlap with each other")


def _refuse_literals(operator: str, operands: tuple[Operand, ...], kinds: frozenset[str]) -> None:
    if any(isinstance(operand, Literal) and kind_of(operand.value) not in kinds for operand in operands):
        raise _wrong_operand(operator)


def _refuse_empty_range(operands: tuple[Operand, ...]) -> None:
    _, lower, upper = operands
    if (
        isinstance(lower, Literal)
        and isinstance(upper, Literal)
        and not ordered("<=")(lower.value, upper.value)
    ):
        raise Refusal(
            "Invalid expression: The BETWEEN operator requires upper bound to be at least the lower bound"
        )


def _computed(operator: str, operands: tuple[Source, Source]) -> Computed:
    wanted = {"+": "N", "-": "N", "list_append": "L"}.get(operator)
    if wanted and any(
        isinstance(operand, Literal) and kind_of(operand.value) != wanted for operand in operands
    ):
        raise _wrong_operand(operator)
    return Computed(operator, operands)
