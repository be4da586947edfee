"""Calls: a function of the service is the only description of one.

From its signature come the arguments that a request has, the answer, the API description and the client. The types of
`messages.py` say which argument names a thread, an owner or a namespace of labels. Whoever decodes arguments gives a
`Names`, which is told each of them: the service checks them, and a client puts its prefix in front.

`call_of(function, ...)` is a call as a client makes it. mypy checks its arguments, and those who use its result.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_args, get_type_hints

import pydantic.dataclasses  # noqa: F401 - pydantic loads it during a call, when a fork may happen.
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic_core import PydanticSerializationError, to_json

from .._runtime.steps import Call, Op
from ..errors import CheckpointerError, CheckpointerInputError
from .messages import ARGUMENTS, Names
from .principals import Principal, Right

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=Callable[..., Op[Any]])

# How many mistakes of a request are named. Describing one takes microseconds, and a body of a hundred bytes can have a
# hundred thousand, so beyond a bound they are only counted.
_MISTAKES_MAX = 5
_MISTAKES_DESCRIBED_MAX = 1000
# A key of the body that an answer quotes is cut to this length: a client may choose one of 16 MiB.
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
    """Returns the answer, by the arguments, if a thread does not exist that they name; None: it runs then, too."""
    creates: str | None = None
    """The argument that names a thread which it creates, if that does not exist."""
    is_about_all: Callable[[Principal, Any], bool] = lambda _who, _arguments: False
    """Tells whether arguments are about all threads."""

    @property
    def path(self) -> str:
        """The path that it is served at."""
        return f"/{self.name}" if "/" in self.name else f"/checkpoints/{self.name}"

    @cached_property
    def title(self) -> str:
        """The name of its messages in the API description."""
        return "".join(map(str.capitalize, self.name.replace("/", "-").split("-")))

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
        return create_model(
            f"{self.title}Request", __config__=ARGUMENTS, __doc__=self.function.__doc__, **fields
        )

    @cached_property
    def answer(self) -> TypeAdapter[Any]:
        """The type of its answer."""
        result = get_args(self._hints["return"])[-1]
        return TypeAdapter(Done if result is type(None) else result)

    def decoded(self, content: bytes, names: Names) -> BaseModel:
        """Return the arguments in a request's body.

        Raises:
            CheckpointerInputError: They are not those of the function; the message quotes no values.
        """
        try:
            return self.arguments.model_validate_json(content, context=names)
        except ValidationError as error:
            raise CheckpointerInputError(_mistakes(error)) from None

    def operation(self, it: Any, arguments: BaseModel) -> Op[T]:
        """Return the operation for arguments."""
        return self.function(it, **vars(arguments))

    def encoded(self, result: T) -> bytes:
        """Return the body of an answer. A replacement character takes the place of half a surrogate pair."""
        if result is None:
            return b"{}"
        try:
            return self.answer.dump_json(result)
        except PydanticSerializationError:
            return to_json(_valid(self.answer.dump_python(result)))


@dataclass(frozen=True)
class Done:
    """The operation is done."""


@dataclass
class OutgoingCall:
    """A call with its arguments, as the transport of a client gets it."""

    endpoint: Endpoint[Any]
    arguments: BaseModel
    inside: Any
    """Has taken the names that are sent."""
    outside: Names
    """Changes the names that are received."""
    sent_bytes: int = field(default=0, init=False)
    received_bytes: int = field(default=0, init=False)

    def body(self) -> bytes:
        """Return the body of the request.

        Raises:
            CheckpointerInputError: It has half a surrogate pair.
        """
        content = encoded(self.arguments)
        self.sent_bytes = len(content)
        return content

    def result(self, content: bytes) -> Any:
        """Return the result in the body of an answer.

        Raises:
            ValueError: It is not that of the function.
        """
        self.received_bytes = len(content)
        found = self.endpoint.answer.validate_json(content, context=self.outside)
        return None if isinstance(found, Done) else found


def encoded(document: Any) -> bytes:
    """Return the JSON of a request, or of a part of one.

    Raises:
        CheckpointerInputError: It has half a surrogate pair.
    """
    try:
        if isinstance(document, BaseModel):
            return document.__pydantic_serializer__.to_json(document, exclude_defaults=True)
        return to_json(document, bytes_mode="base64")
    except PydanticSerializationError as error:
        msg = f"an argument cannot be sent to the gateway: {error}; use valid Unicode"
        raise CheckpointerInputError(msg) from error


def size_of(value: Any) -> int:
    """Return how many bytes a request, an answer or a part of one has, about: those of its texts and bytes."""
    if isinstance(value, (bytes, str)):
        return len(value)
    if isinstance(value, (Mapping, BaseModel)) or is_dataclass(value):
        inner = value if isinstance(value, Mapping) else vars(value)
        return sum(map(size_of, inner.values()))
    return sum(map(size_of, value)) if isinstance(value, (list, tuple)) else 1


_ENDPOINTS: dict[Callable[..., Any], Endpoint[Any]] = {}


def endpoints_of(*modules: ModuleType) -> tuple[Endpoint[Any], ...]:
    """Return the endpoints of modules, in the order of their functions."""
    return tuple(
        each
        for module in modules
        for function, each in _ENDPOINTS.items()
        if function.__module__ == module.__name__
    )


def serve(
    right: Right | None,
    *,
    name: str | None = None,
    operation: str | None = None,
    absent: Callable[[Any], Any] | None = None,
    creates: str | None = None,
    is_about_all: Callable[[Principal, Any], bool] = lambda _who, _arguments: False,
) -> Callable[[S], S]:
    """Let clients call the decorated function, by its name with hyphens or another one; see `Endpoint`."""

    def added(function: S) -> S:
        own, event = name or function.__name__.replace("_", "-"), operation or function.__name__
        _ENDPOINTS[function] = Endpoint(own, function, right, event, absent, creates, is_about_all)
        return function

    return added


def call_of(
    function: Callable[Concatenate[Any, P], Op[Any]],
    names: tuple[Names, Names],
    /,
    *args: P.args,
    **named: P.kwargs,
) -> Call:
    """Return a call of a function of the service.

    Args:
        function: The function, of which only the signature is used.
        names: What is told the names that are sent, and those that are received.
        args: Its arguments, without the first one.
        named: Those by name.

    Raises:
        CheckpointerInputError: The service would refuse the arguments.
    """
    endpoint = _ENDPOINTS[function]
    _, *given = inspect.signature(function).bind(None, *args, **named).arguments.items()
    try:
        model = endpoint.arguments.__pydantic_validator__.validate_python(dict(given), context=names[0])
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            original = each.get("ctx", {}).get("error")
            if isinstance(original, CheckpointerError):
                raise original from None
        raise CheckpointerInputError(_mistakes(error)) from None
    return Call(endpoint.name, {"asked": OutgoingCall(endpoint, model, *names)})


def asked_in(call: Call) -> OutgoingCall | None:
    """Return a call's arguments; `None` for one that is not of a function."""
    asked: OutgoingCall | None = call.params.get("asked")
    return asked


def _mistakes(error: ValidationError) -> str:
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


def _valid(value: Any) -> Any:
    """Return a value without halves of surrogate pairs, as which JavaScript cuts a text."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {_valid(name): _valid(each) for name, each in value.items()}
    return list(map(_valid, value)) if isinstance(value, (list, tuple)) else value
