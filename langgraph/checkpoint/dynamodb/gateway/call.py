"""Calls: a function of the service is the only description of one.

From its signature come the arguments that a request has, the response, the API description and the client. The types of
its arguments say which of them names a thread, an owner or a namespace, so that no call can forget to check it. Whoever
decodes arguments gives a `Names`, which is told each of them: the service checks them, and a client puts its prefix in
front. docs/wire.md says what the fields mean: JSON in LangGraph's own terms, and bytes as base64.

`http/exchange.py` makes a client's request of the same function. mypy checks its arguments, and who uses its result.
"""

import inspect
import json
from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from types import ModuleType
from typing import Annotated, Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, get_args, get_type_hints

import pydantic.dataclasses  # noqa: F401 - pydantic loads it during a call, when a fork may happen.
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    create_model,
)

from .._format.wire import DIGEST_BYTES
from .._operations.arguments import COUNT_MAX
from .._operations.thread_lock import TOKEN_BYTES
from .._runtime.steps import Op
from ..errors import CheckpointerInputError
from .problems import ProblemError

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=Callable[..., Op[Any]])

Right: TypeAlias = Literal["read", "write", "administer"]
ARGUMENTS = ConfigDict(
    extra="forbid",
    frozen=True,
    strict=True,
    val_json_bytes="base64",
    # A client makes instances, whose names have to be told too.
    revalidate_instances="always",
)
RESPONSES = ConfigDict(val_json_bytes="base64")


class Argument:
    """The base of what requests have: an unknown field is refused."""

    __pydantic_config__ = ARGUMENTS


class Response:
    """The base of what responses have: a client ignores unknown fields, so responses can grow."""

    __pydantic_config__ = RESPONSES


# How many runs one request may name, and how many operations, keys or entries: each may take a request to the table.
IDS_MAX = 10_000
MANY_MAX = 250


Kind: TypeAlias = Literal["thread", "position", "threads", "owner", "memories", "searched", "nodes"]
"""The kinds of names: the id of a thread, the one at which a list stopped, the beginning of ids, an owner, a namespace
of memories, the beginning of those to search, a namespace of cached nodes."""
Names: TypeAlias = Callable[[Kind, Any], Any]
"""Takes each name in arguments, with its kind, and returns it, perhaps in another form, or raises."""


def named_by(kind: Kind) -> AfterValidator:
    """Tell the `Names` of who decodes arguments each name of a kind."""

    def told(name: Any, info: ValidationInfo) -> Any:
        return name if info.context is None else info.context(kind, name)

    return AfterValidator(told)


def _in_json(length: int | None = None) -> WithJsonSchema:
    """Return the schema of the base64 text of bytes, or of so many bytes."""
    schema: dict[str, Any] = {
        "type": "string",
        "contentEncoding": "base64",
        # Complete groups of four characters; the last one may be padded.
        "pattern": r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$",
    }
    if length is not None:
        characters, padding = divmod(8 * length, 6)[0], -length % 3
        last = {1: "[AEIMQUYcgkosw048]", 2: "[AQgw]"}.get(padding, "[A-Za-z0-9+/]")
        schema["pattern"] = f"^[A-Za-z0-9+/]{{{characters}}}{last}{'=' * padding}$"
    return WithJsonSchema(schema)


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _whole(value: Any) -> Any:
    """Return a whole number, which JSON, and so many a client, may write as 8.0, as an int."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def finite_json(value: Any) -> Any:
    """Return a JSON value; raise `ValueError` if it has a number that JSON has not, as which 1e999 is read."""
    json.dumps(value, allow_nan=False)
    return value


_TEXT = PlainSerializer(_base64, return_type=str)
_WHOLE = BeforeValidator(_whole)
Bytes: TypeAlias = Annotated[bytes, _TEXT, _in_json()]
Digest: TypeAlias = Annotated[
    bytes, Field(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES), _TEXT, _in_json(DIGEST_BYTES)
]
LockToken: TypeAlias = Annotated[
    bytes, Field(min_length=TOKEN_BYTES, max_length=TOKEN_BYTES), _TEXT, _in_json(TOKEN_BYTES)
]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Object: TypeAlias = Annotated[dict[str, Any], AfterValidator(finite_json)]
"""A JSON object."""
# From 0, and from 1.
Number: TypeAlias = Annotated[int, Field(ge=0, le=COUNT_MAX), _WHOLE]
Count: TypeAlias = Annotated[int, Field(ge=1, le=COUNT_MAX), _WHOLE]

ThreadId: TypeAlias = Annotated[Text, named_by("thread")]
Owner: TypeAlias = Annotated[Text, named_by("owner")]


# The size of a request, told from its bytes before anything is made of them

NESTING_MAX = 32
"""How deeply lists and mappings may be nested."""
VALUES_MAX = 100_000
"""How many values, lists, mappings and their keys a document may have in all."""
MARKS_MAX = 1_000_000
"""How many brackets, commas, colons, quotation marks and escapes a text may have: to decode them holds the
interpreter's lock."""

_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
# Between two strides, the interpreter's lock may go to another OS thread.
_STRIDE = 1 << 20
_MARKS = b'[]{},:"\\'
_OTHERS = bytes(set(range(256)) - set(_MARKS))


def check_json(body: bytes, nesting_max: int = NESTING_MAX) -> None:
    """Raise if JSON text is too deep or too large. Its parser checks the rest.

    Every pass over the body runs in C, and copies only its marks. Only what `VALUES_MAX` bounds is walked one by one.
    """
    _check_marks(body)
    # A backslash escapes the next character. Without both, each quotation mark begins or ends a text.
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    unescaped = b"".join(
        unescaped[start : start + _STRIDE].translate(None, _OTHERS)
        for start in range(0, len(unescaped), _STRIDE)
    )
    _check_values(unescaped.count(b'"') // 2)
    outside = b"".join(unescaped.split(b'"')[::2])
    opened, closed = (sum(map(outside.count, marks)) for marks in ((b"[", b"{"), (b"]", b"}")))
    _check_values(1 + opened + outside.count(b",") + outside.count(b":"))
    if closed > opened:
        raise ProblemError(400, "the body is not JSON: it closes more lists and mappings than it opens")
    depths = (_STEPS.get(each, 0) for each in outside)
    if max(accumulate(depths), default=0) > nesting_max:
        raise ProblemError(400, f"the body is nested deeper than {nesting_max} lists and mappings")


def _check_marks(body: bytes) -> None:
    marks = 0
    for start in range(0, len(body), _STRIDE):
        marks += sum(body.count(each, start, start + _STRIDE) for each in _MARKS)
        if marks > MARKS_MAX:
            says = f"the body has more than {MARKS_MAX:,} marks and escapes; send it in several requests"
            raise ProblemError(413, says)


def _check_values(values: int) -> None:
    if values > VALUES_MAX:
        raise ProblemError(413, f"the body has more than {VALUES_MAX:,} values; send it in several requests")


# Endpoints

# How many mistakes of a request are named. Describing one takes microseconds, and a body of a hundred bytes can have a
# hundred thousand, so beyond a bound they are only counted.
_MISTAKES_MAX = 5
_MISTAKES_DESCRIBED_MAX = 1000
# A key of the body that a response quotes is cut to this length: a client may choose one of 16 MiB.
_NAME_CHARACTERS_MAX = 100


@dataclass(frozen=True, eq=False)
class Endpoint(Generic[T]):
    """A function that clients may call as `POST /checkpoints/{name}`, or as `POST /{name}` if that has a slash."""

    name: str
    function: Callable[..., Op[T]]
    """It takes a `Serving` and the arguments, and returns an operation."""
    right: Right | None
    """The right that it needs. None: each operation of the request needs its own."""
    event: str
    """The name of its events: that of the saver's, store's or cache's method."""
    absent: Callable[[Any], T] | None = None
    """Returns the response, by the arguments, if a thread does not exist that they name; None: it runs then, too."""
    creates: str | None = None
    """The argument that names a thread which it creates, if that does not exist."""
    is_about_all: Callable[[Any, Any], bool] = lambda _who, _arguments: False
    """Tells whether the arguments of a principal are about all threads."""

    @property
    def path(self) -> str:
        """The path that it is served at."""
        return f"/{self.name}" if "/" in self.name else f"/checkpoints/{self.name}"

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.function, include_extras=True)

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The model of its arguments."""
        _, *parameters = inspect.signature(self.function).parameters.values()
        fields: dict[str, Any] = {
            each.name: (self._hints[each.name], ... if each.default is each.empty else each.default)
            for each in parameters
        }
        title = "".join(map(str.capitalize, self.name.replace("/", "-").split("-")))
        return create_model(
            f"{title}Request", __config__=ARGUMENTS, __doc__=inspect.getdoc(self.function), **fields
        )

    @cached_property
    def response(self) -> TypeAdapter[Any]:
        """The type of its response."""
        result = get_args(self._hints["return"])[-1]
        # Before Python 3.11, `Op[None]` has None itself as its argument, and not its type.
        return TypeAdapter(Done if result in (None, type(None)) else result)

    def decoded(self, content: bytes, names: Names) -> BaseModel:
        """Return the arguments in a request's body."""
        check_json(content)
        try:
            return self.arguments.model_validate_json(content, context=names)
        except ValidationError as error:
            raise CheckpointerInputError(mistakes_of(error)) from None

    def operation(self, it: Any, arguments: BaseModel) -> Op[T]:
        """Return the operation for arguments."""
        return self.function(it, **vars(arguments))

    def encoded(self, result: T) -> bytes:
        """Return the body of a response."""
        return b"{}" if result is None else self.response.dump_json(result)


@dataclass(frozen=True)
class Done:
    """The operation is done."""


ENDPOINTS: dict[Callable[..., Any], Endpoint[Any]] = {}


def endpoints_of(*modules: ModuleType) -> tuple[Endpoint[Any], ...]:
    """Return the endpoints of modules, in the order of their functions."""
    return tuple(
        each
        for module in modules
        for function, each in ENDPOINTS.items()
        if function.__module__ == module.__name__
    )


def serve(
    right: Right | None,
    *,
    name: str | None = None,
    operation: str | None = None,
    absent: Callable[[Any], Any] | None = None,
    creates: str | None = None,
    is_about_all: Callable[[Any, Any], bool] = lambda _who, _arguments: False,
) -> Callable[[S], S]:
    """Let clients call the decorated function, by its name with hyphens or another one; see `Endpoint`."""

    def added(function: S) -> S:
        own, event = name or function.__name__.replace("_", "-"), operation or function.__name__
        ENDPOINTS[function] = Endpoint(own, function, right, event, absent, creates, is_about_all)
        return function

    return added


def mistakes_of(error: ValidationError) -> str:
    """Say what is wrong with arguments, without quoting them."""
    if error.error_count() > _MISTAKES_DESCRIBED_MAX:
        return f"the body has {error.error_count():,} mistakes; compare it with /openapi.json"
    # The input may be a state, so it is not even asked for.
    found = error.errors(include_url=False, include_context=False, include_input=False)
    named = [f"{_place(each['loc']) or 'the body'}: {each['msg']}" for each in found[:_MISTAKES_MAX]]
    return "; ".join(named) + (
        f"; and {len(found) - _MISTAKES_MAX} more" if len(found) > _MISTAKES_MAX else ""
    )


def _place(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(each)[:_NAME_CHARACTERS_MAX] for each in loc)
