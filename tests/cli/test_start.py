"""The modules that the command line loads: for a list of commands no command, and for a command those it needs."""

import os
import subprocess
import sys

import pytest

from tests.support.documents import ROOT
from tools.engine import Engine

PACKAGE = "langgraph.checkpoint.dynamodb"
# The modules that a list of commands loads, and that need nothing of LangGraph, AWS or the terminal.
LISTING = {"app", "printed"}
# What costs a start the most, apart from the saver.
HEAVY = {"aioboto3", "aiobotocore", "aiohttp", "httpx", "langgraph.graph", "numpy", "psycopg", "starlette"}


def loaded_by(*arguments: str, env: dict[str, str] | None = None) -> tuple[set[str], str]:
    """Return the modules that a new process has loaded at the end of a command, and what it printed."""
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('loaded:', *sys.modules, file=sys.stderr))\n"
        "from langgraph.checkpoint.dynamodb.cli import main\n"
        "sys.argv[0] = 'langgraph-dynamodb'\n"
        "main()"
    )
    environment = (os.environ if env is None else env) | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
    says, _, loaded = ended.stderr.rpartition("loaded:")
    return set(loaded.split()), ended.stdout + says


def commands_in(loaded: set[str]) -> set[str]:
    """Return the loaded modules of the command line."""
    prefix = f"{PACKAGE}.cli."
    return {each.removeprefix(prefix) for each in loaded if each.startswith(prefix)}


@pytest.mark.parametrize(
    ("arguments", "says", "modules"),
    [
        ("--help", "List threads: last activity and step, waiting or not.", LISTING),
        ("memories", "List namespaces that have memories.", LISTING),
        ("thread", "Did you mean 'threads'?", LISTING),
        # What is printed needs no extra either.
        ("--version", "0.1.0", {"printed"}),
        ("docs", "runbook", {"printed"}),
    ],
)
def test_a_list_of_commands_and_what_is_printed_load_no_command(
    arguments: str, says: str, modules: set[str]
) -> None:
    loaded, printed = loaded_by(*arguments.split())
    assert says in printed
    assert commands_in(loaded) == modules
    assert ("typer" in loaded) == (modules == LISTING)
    assert not {"boto3", "rich", "langchain_core", "langgraph.checkpoint.base", "langgraph.store"} & loaded


@pytest.mark.parametrize(("words", "says"), [("memories li", "list"), ("threads --wai", "--waiting")])
def test_a_shell_can_complete_commands_and_options(words: str, says: str) -> None:
    given = f"langgraph-dynamodb {words}"
    asked = {
        "_LANGGRAPH_DYNAMODB_COMPLETE": "complete_bash",
        "COMP_WORDS": given,
        "COMP_CWORD": str(len(given.split()) - 1),
    }
    loaded, printed = loaded_by(env=os.environ | asked)
    assert printed.split() == [says]
    assert ("listing" in commands_in(loaded)) == words.startswith("threads ")


@pytest.mark.engines("dynamodb-local")
def test_a_command_loads_what_it_needs(engine: Engine, table: str) -> None:
    loaded, printed = loaded_by("threads", "--table", table, env=engine.environment())
    assert "waiting" in printed
    assert commands_in(loaded) == LISTING | {"command", "context", "listing", "many", "output"}
    packages = {
        f"{PACKAGE}.{each}" for each in ("gateway", "http", "migrate", "observe", "server", "tenants", "view")
    }
    packages |= {"langgraph.cache.dynamodb.node_cache", "langgraph.store.dynamodb.store"}
    assert not (packages | HEAVY) & loaded
    assert f"{PACKAGE}.saver" in loaded
