"""The gateway in this process, on operations that a test has in hand, and clients of it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import httpx
import pytest
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.requests import HTTPConnection

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Wait
from langgraph.checkpoint.dynamodb.gateway import Principal, anybody_on_this_machine, create_gateway
from langgraph.checkpoint.dynamodb.gateway.call import Endpoint
from langgraph.checkpoint.dynamodb.gateway.opaque import Value
from langgraph.checkpoint.dynamodb.gateway.thread_calls import Checkpoint, FoundCheckpoint

MakeApp = Callable[..., Starlette]
MakeClient = Callable[..., httpx.AsyncClient]
Lines = Callable[[], list[Any]]


class Script:
    """Operations that note what they are asked, and answer what a test has given them."""

    def __init__(self) -> None:
        """Begin with answers that have nothing in them."""
        self.asked: list[Any] = []
        self.answer: Any = None
        self.error: Exception | None = None
        self.wait: Wait | None = None
        """What each operation waits for."""
        self.running = 0
        """How many run now."""

    def run(self, _endpoint: Any, it: Any, request: Any) -> Op[Any]:
        """Take the place of an endpoint's operation."""
        self.asked.append(request)
        self.running += 1
        try:
            if self.wait is not None:
                yield (self.wait,)
        finally:
            self.running -= 1
        if self.error is not None:
            raise self.error
        return self.answer(it) if callable(self.answer) else self.answer


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Give the operations of all gateways that the test makes."""
    made = Script()
    monkeypatch.setattr(Endpoint, "operation", lambda *given: made.run(*given))
    return made


@pytest.fixture
def make_app(script: Script) -> MakeApp:
    """Give a factory of gateways that need no table."""
    del script

    def make(**options: Any) -> Starlette:
        if "principal" in options:
            options["authenticate"] = always(options.pop("principal"))
        defaults: dict[str, Any] = {"authenticate": anybody_on_this_machine}
        return create_gateway(DynamoDBSaver("threads"), **(defaults | options))

    return make


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """Give what gives the records of the service's log."""
    caplog.set_level("INFO", "langgraph")
    return lambda: [each for each in caplog.records if each.name.startswith("langgraph")]


@pytest.fixture
def make_client(make_app: MakeApp) -> MakeClient:
    """Give a factory of clients, each of a gateway of its own that is made with the options given."""
    return lambda **options: client_of(make_app(**options))


def client_of(gateway: Any) -> httpx.AsyncClient:
    """Make a client of a gateway, without a network."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=gateway), base_url="http://localhost")


def found_bytes(data: bytes) -> FoundCheckpoint:
    """Return an answer with some bytes."""
    found = Checkpoint("acme/1", "", "1", None, {"id": "1"}, {}, None, {"x": Value("bytes", data)}, [])
    return FoundCheckpoint(found)


def always(principal: Principal | None) -> Callable[[HTTPConnection], Any]:
    """Authenticate everybody as one principal, or nobody."""

    async def authenticate(request: HTTPConnection) -> Principal | None:
        del request
        return principal

    return authenticate


def by_token(principals: Mapping[str, Principal]) -> Callable[[HTTPConnection], Any]:
    """Authenticate by a token that is a principal's name."""

    async def authenticate(request: HTTPConnection) -> Principal | None:
        return principals.get(request.headers.get("authorization", "").removeprefix("Bearer "))

    return authenticate


async def send_as(gateway: Starlette, who: str, path: str, document: Any) -> httpx.Response:
    """Send a document as JSON, in which bytes are base64, with somebody's token."""
    headers = {"authorization": f"Bearer {who}", "content-type": "application/json"}
    async with client_of(gateway) as client:
        return await client.post(path, content=to_json(document, bytes_mode="base64"), headers=headers)


def connection(headers: Mapping[str, str] | Iterable[tuple[str, str]] = (), **scope: Any) -> HTTPConnection:
    """A request with these headers."""
    given = headers.items() if isinstance(headers, Mapping) else headers
    encoded = [(name.lower().encode(), value.encode()) for name, value in given]
    whole = {
        "type": "http",
        "method": "GET",
        "path": "/about",
        "query_string": b"",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
        **scope,
    }
    return HTTPConnection({**whole, "headers": encoded})
