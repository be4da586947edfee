"""What every command has in common: options, exit codes, messages, an end by Ctrl-C."""

import builtins
import errno
import io
import re
import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ProfileNotFound,
    ReadTimeoutError,
)
from langgraph.store.base import InvalidNamespaceError
from typer.testing import CliRunner

from langgraph.checkpoint.dynamodb import cli, errors
from langgraph.checkpoint.dynamodb._runtime.clients import default_config
from langgraph.checkpoint.dynamodb.cli import CommandError, Exit, printed
from langgraph.checkpoint.dynamodb.cli.app import app
from langgraph.checkpoint.dynamodb.cli.command import explained
from langgraph.checkpoint.dynamodb.cli.context import CommandContext, ConnectionArguments
from langgraph.checkpoint.dynamodb.cli.output import Output
from langgraph.checkpoint.dynamodb.version import requirement
from langgraph.store.dynamodb import SearchLimitError
from tests.cli.conftest import Run
from tests.support.http_stand_in import Answer, http_stand_in
from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")
THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "Scan")
REFUSED = ClientError({"Error": {"Code": "ValidationException", "Message": "odd"}}, "Scan")
UNKNOWN = ClientError({"Error": {"Code": "UnrecognizedClientException", "Message": "who"}}, "Scan")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError(Exit.PROBLEMS, "x"), 8),
        (errors.CheckpointerInputError("x"), 2),
        (SearchLimitError("too much"), 2),
        (InvalidNamespaceError("no label"), 2),
        (errors.CheckpointNotFoundError("x"), 3),
        (errors.CheckpointerConfigurationError("x"), 4),
        (errors.CheckpointCorruptionError("x"), 5),
        (errors.CheckpointFormatError("x"), 5),
        (errors.ThreadBusyError("x"), 6),
        (errors.CheckpointerError("x"), 6),
        (UNKNOWN, 4),
        (THROTTLED, 6),
        (ReadTimeoutError(endpoint_url="http://localhost"), 6),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "done"), 2),
        (OSError(errno.ENOSPC, "No space left on device"), 1),
        (REFUSED, 1),
        (RecursionError(), 1),
    ],
)
def test_every_error_has_a_code(error: Exception, code: int) -> None:
    end: Any = explained(error, "table")
    assert end.code == code


def test_help_names_every_exit_code() -> None:
    shown = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    assert all(f"{code.value}: {code.meaning}" in shown for code in Exit)


def test_a_profile_has_to_exist() -> None:
    result = CliRunner().invoke(app, ["threads", "--table", "any-table", "--profile", "nobody"])
    assert result.exit_code == 4
    assert "there is no such AWS profile (The config profile (nobody) could not be found)" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("history", "t", "--limit", f"{10**30}"), 2),
        (("threads", "--limit", f"{10**30}"), 2),
        (("prune", "--all", "--keep-last", f"{10**30}"), 2),
        (("threads", "--owner", "ada", "--since", "99999w"), 0),
        (("threads", "--owner", "ada", "--since", "100000d"), 2),
        (("prune", "--all", "--yes", "--older-than", "99999w"), 0),
    ],
)
def test_numbers_may_be_very_large(run: Run, table: str, arguments: tuple[str, ...], code: int) -> None:
    assert run(*arguments, "--table", table).code == code


PRINTED = [
    "template",
    "template gateway",
    "template --policy tenant",
    "docs",
    "docs runbook",
    "docs docs/wire.md",
]


@pytest.mark.parametrize("words", PRINTED)
@pytest.mark.parametrize("main", [printed.main, cli.main], ids=["python -m", "langgraph-dynamodb"])
def test_what_is_printed_is_what_python_prints(
    words: str, main: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["langgraph-dynamodb", *words.split()])
    main()
    printed = capsys.readouterr().out
    assert CliRunner().invoke(app, words.split()).stdout == printed
    assert len(printed.splitlines()) > 10


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("docs nowhere", "no document 'nowhere'; `langgraph-dynamodb docs` lists"),
        ("template nowhere", "--list` lists them"),
        ("template --policy root", "use one of agent, runner"),
        ("template gateway --policy agent", "--policy: not allowed with argument NAME"),
        ("template --list --policy agent", "--policy: not allowed with argument --list"),
        ("template gateway --table-arn arn:aws:dynamodb:*:*:table/threads", "add --policy"),
    ],
)
def test_what_is_not_there_to_print_is_told(words: str, says: str) -> None:
    ended = CliRunner().invoke(app, words.split())
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert says in ended.stderr


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give what makes a module as if it were not installed, or as if its import ended in another way."""

    def hide(name: str, end: BaseException | None = None) -> None:
        real = builtins.__import__

        def import_(module: str, *rest: Any) -> Any:
            if module.partition(".")[0] == name:
                raise end or ModuleNotFoundError(name=name)
            return real(module, *rest)

        for each in [each for each in sys.modules if each.startswith("langgraph.checkpoint.dynamodb.cli.")]:
            monkeypatch.delitem(sys.modules, each)
        monkeypatch.setattr(builtins, "__import__", import_)

    return hide


# A person may find a mistake in the command while it loads, or a module is missing, of the extra or not.
MISSING = f"langgraph-dynamodb: {{}} is not installed. Run pip install {requirement('cli')}."


@pytest.mark.parametrize(
    ("module", "end", "code"),
    [
        ("typer", KeyboardInterrupt(), Exit.INTERRUPTED),
        ("webbrowser", KeyboardInterrupt(), Exit.INTERRUPTED),
        ("typer", None, MISSING.format("typer")),
        ("rich", None, MISSING.format("rich")),
        ("webbrowser", None, None),
    ],
)
def test_what_ends_it_while_it_is_loaded(
    module: str,
    end: BaseException | None,
    code: Exit | str | None,
    hide: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hide(module, end)
    monkeypatch.setattr(sys, "argv", ["langgraph-dynamodb", "view", "thread-1"])
    with pytest.raises(ModuleNotFoundError if code is None else SystemExit) as caught:
        cli.main()
    says = "" if end is None else "interrupted\n"
    assert (getattr(caught.value, "code", None), capsys.readouterr().err) == (code, says)


def test_main_runs_the_command_line_and_prints_what_the_terminal_has_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "argv", ["langgraph-dynamodb", "--version"])
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    with pytest.raises(SystemExit):
        cli.main()
    monkeypatch.setattr(sys, "argv", ["langgraph-dynamodb", "show", "thread-1"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, "give --table" in said.getvalue()) == (4, True)
    terminal.write("●")
    terminal.flush()
    assert terminal.buffer.getvalue() == b"0.1.0\n\\u25cf"


# In the terms of the command line


@pytest.mark.parametrize(
    "error",
    [
        NoRegionError(),
        EndpointConnectionError(endpoint_url="http://nowhere"),
        ClientError({"Error": {"Code": "ExpiredToken", "Message": ""}}, "Query"),
        ClientError({"Error": {"Code": "InvalidAccessKeyId", "Message": ""}}, "Query"),
        NoCredentialsError(),
        ProfileNotFound(profile="agents"),
    ],
    ids=lambda error: type(error).__name__ + getattr(error, "response", {}).get("Error", {}).get("Code", ""),
)
def test_a_remedy_names_options_of_the_command_line(error: Exception) -> None:
    found: Any = explained(error, "threads")
    assert not re.search("region_name|endpoint_url|session=", str(found))
    assert re.search("--(region|endpoint-url|profile)", str(found))
    wrapped = errors.CheckpointerConfigurationError("check table_name, region_name and session=")
    wrapped.__cause__ = error
    assert str(explained(wrapped, "threads")) == "check --table, --region and --profile"


def test_what_names_a_place_in_a_file_stays_as_it_is() -> None:
    error = errors.CheckpointerConfigurationError(
        "agent.yaml, checkpointer.config.region_name: is unknown; there is endpoint_url"
    )
    assert str(explained(error, "threads")) == str(error)


@pytest.mark.parametrize("name", ["bad name!", "ab"])
@pytest.mark.parametrize(
    "command", [("show", "t"), ("threads",), ("memories", "list"), ("delete", "t", "--yes"), ("setup",)]
)
def test_a_name_that_no_table_can_have_is_told(run: Run, command: tuple[str, ...], name: str) -> None:
    ended = run(*command, "--table", name)
    assert ended.code == 4
    assert f"--table: is {name!r}; give the table's name, of 3 to 255 letters" in " ".join(
        (ended.err + ended.out).split()
    )


@pytest.mark.parametrize("command", [("show", "t"), ("memories", "list")])
def test_a_name_that_no_region_can_have_is_told(run: Run, command: tuple[str, ...]) -> None:
    run(*command, "--table", "threads", "--region", "bad region").fails(4, "'bad region'", "check --region")


def test_a_table_that_is_not_there_is_told_with_where_it_was_looked_for(run: Run, engine: Engine) -> None:
    ended = run("history", "thread-1", "--table", "nowhere", "--region", "eu-west-3").fails(
        4, "check --table and --region", "or run `langgraph-dynamodb setup` for development"
    )
    said = " ".join(ended.err.split())
    assert f"the endpoint is {engine.endpoint_url}" in said
    assert said.count("eu-west-3") == 1


def test_the_endpoint_of_aws_itself_is_not_named_beside_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    context = CommandContext(ConnectionArguments("nowhere", region_name="eu-west-3"), Output(as_json=False))
    monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB", raising=False)
    with context.opened:
        assert context.custom_endpoint is None


def test_an_endpoint_that_does_not_answer_is_asked_once(run_at: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends after the time-outs of one request; a saver's own attempts go on for a minute."""
    given = default_config()
    assert given.connect_timeout + given.read_timeout <= 15
    hasty = given.merge(Config(read_timeout=0.5))
    monkeypatch.setattr("langgraph.checkpoint.dynamodb._runtime.clients.default_config", lambda *_: hasty)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        run_at("show", "t", "--table", "the-table", "--region", "eu-west-1", "--endpoint-url", url).fails(
            6, "no answer from DynamoDB for table the-table"
        )
        # Each attempt has a connection of its own.
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.parametrize(
    "answer", [(200, "text/html"), (403, "text/html"), (404, "text/plain"), (501, "text/html")], ids=str
)
def test_an_endpoint_that_is_not_dynamodb_is_told_with_the_option_to_check(
    run_at: Run, answer: tuple[int, str]
) -> None:
    status, content_type = answer
    with http_stand_in() as server:
        server.always = Answer(status, b"<p>no</p>", {"Content-Type": content_type})
        where = ("--table", "the-table", "--region", "eu-west-1", "--endpoint-url", server.address)
        run_at("show", "t", *where).fails(
            4, "another server than DynamoDB answered for table the-table", "check --endpoint-url"
        )
