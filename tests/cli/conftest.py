"""A table with the threads that the commands are tried on, and the command line on it, in this process."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import typer.testing
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from typer.testing import CliRunner
from typing_extensions import Self

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.cli.app import app
from tests.conftest import MakeSaver
from tests.support import graphs
from tests.support.checkpoints import Conversation, table_of_its_own, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

KEY = "0123456789abcdef"


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on standard output."""
        return json.loads(self.out)

    def fails(self, code: int, *says: str) -> Self:
        """Check that it ended with this code, and why, by what it said on standard error."""
        said = " ".join(self.err.split())
        assert self.code == code, said
        for each in says:
            assert each in said
        return self


Run = Callable[..., Ended]
OpenSaver = MakeSaver


@pytest.fixture(autouse=True)
def _one_session(sessions: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Share a session: the first client of each reads all that AWS says of its services."""
    made = boto3.Session

    def session(**options: Any) -> boto3.Session:
        shared: boto3.Session = sessions["session"]
        return made(**options) if options.get("profile_name") else shared

    monkeypatch.setattr(boto3, "Session", session)


@pytest.fixture(scope="module")
def make_table(client: DynamoDBClient) -> Iterator[Callable[[], str]]:
    """Give a factory of tables as `setup()` makes them, that go with the module."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(table_of_its_own(client, "cli"))


@pytest.fixture(scope="module")
def shared(make_table: Callable[[], str]) -> str:
    """Give a table for all tests of a module, each of which has threads of its own."""
    return make_table()


@pytest.fixture
def own_table(make_table: Callable[[], str]) -> str:
    """Give a table of the test's own, which `run` then works on."""
    return make_table()


@pytest.fixture
def open_own(own_table: str, open_saver: OpenSaver) -> OpenSaver:
    """Give a factory of savers on a table of the test's own."""
    return functools.partial(open_saver, own_table)


@pytest.fixture
def saver(shared: str, open_saver: OpenSaver) -> DynamoDBSaver:
    """Give a saver on the table that the tests of a module share."""
    return open_saver(shared)


@pytest.fixture
def thread(saver: DynamoDBSaver) -> str:
    """Give a thread of two checkpoints."""
    name = f"{uuid.uuid4()}"
    talk = Conversation(saver, name)
    talk.put(said=["one"])
    talk.put(said=["one", "two"])
    return name


@pytest.fixture(scope="session")
def table(client: DynamoDBClient, open_saver: OpenSaver) -> Iterator[str]:
    """Give the table with threads that no test changes: a chat, a fork, one that waits, and subgraphs."""
    with table_of_its_own(client, "cli") as name:
        saver = open_saver(name)
        chat = graphs.agent(saver)
        for thread in ("chat", "forked"):
            chat.invoke({"messages": [("user", "the weather")]}, thread_config(thread))
        states = list(chat.get_state_history(thread_config("forked")))
        chat.update_state(states[2].config, {"messages": [("user", "another way")]}, as_node="model")
        graphs.approvals(saver).invoke({"log": ["begun"]}, thread_config("waiting"))
        graphs.subgraphs(None)(saver).invoke({"log": ["begun"]}, thread_config("nested"))
        yield name


def count(saver: Any, thread_id: str) -> int:
    """How many checkpoints a saver has of a thread."""
    return len(list(saver.list(thread_config(thread_id))))


class Screen(io.StringIO):
    """A stream of a terminal."""

    def isatty(self) -> bool:
        """Tell that it is one."""
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Screen]:
    """Give what seats a person at a terminal, who answers the next question; it returns what they see."""

    def seat(answer: str = "") -> Screen:
        screen = Screen()
        monkeypatch.setenv("TERM", "xterm")
        for name, stream in {"stdin": Screen(answer), "stdout": screen, "stderr": screen}.items():
            monkeypatch.setattr(sys, name, stream)
        return screen

    return seat


@pytest.fixture(scope="session", autouse=True)
def _commands_are_made_once() -> Iterator[None]:
    """Let all runs share the commands, which typer makes anew from their functions for each of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture
def run_at() -> Run:
    """Give what runs a command, and what it is told on standard input."""
    runner = CliRunner()

    def run(*arguments: str, stdin: str | None = None) -> Ended:
        result = runner.invoke(app, arguments, input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ended(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def run(engine: Engine, run_at: Run, request: pytest.FixtureRequest) -> Run:
    """Give what runs a command on the table of the test, or of its module, unless it is told another one."""

    def run(*arguments: str, stdin: str | None = None) -> Ended:
        if "--config" not in arguments:
            arguments += ("--endpoint-url", engine.endpoint_url)
            if "--table" not in arguments:
                own = "own_table" in request.fixturenames
                arguments += ("--table", request.getfixturevalue("own_table" if own else "shared"))
        return run_at(*arguments, stdin=stdin)

    return run


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give what configures commands by the environment with the keys that `encrypting` has, or others."""

    def configure(**options: str) -> None:
        monkeypatch.setenv("LANGGRAPH_CHECKPOINTER_TYPE", "dynamodb")
        for name, value in {"encryption_key": KEY, "owner_key": KEY, **options}.items():
            place = f"LANGGRAPH_CHECKPOINTER_CONFIG__{name.upper()}"
            if name.endswith("_key"):
                monkeypatch.setenv(f"{place}__ENVIRONMENT", name)
                monkeypatch.setenv(name, value)
            else:
                monkeypatch.setenv(place, value)

    return configure


def encrypting() -> dict[str, Any]:
    """Return the options of a saver that encrypts."""
    serde = EncryptedSerializer.from_pycryptodome_aes(key=KEY.encode())
    return {"serde": serde, "owner_key": KEY.encode()}


@pytest.fixture
def write_config(engine: Engine, tmp_path: Path) -> Callable[..., str]:
    """Give what writes a file that configures a component on a table, and returns its path."""

    def write(table: str, component: str = "checkpointer", **options: Any) -> str:
        where = {"table_name": table, "endpoint_url": engine.endpoint_url, "region_name": engine.region_name}
        file = tmp_path / "agent.yaml"
        file.write_text(json.dumps({component: {"type": "dynamodb", "config": where | options}}))
        return str(file)

    return write
