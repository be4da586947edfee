"""A DynamoDB engine on this machine, for the tests, the demo and the benchmarks.

Owns: which engines there are, in which order they are preferred, and how a client reaches one.
Must not know: the saver, or what anybody stores. Only the standard library is imported, so that a missing
dependency is reported by name instead of as a traceback.

An engine is, in this order of preference:

* `external`: whatever answers at `LANGGRAPH_DYNAMODB_ENDPOINT`;
* `dynamodb-local`: Amazon's DynamoDB Local (see `tools.dynamodb_local`);
* `moto`: moto's server, by the same Python. It needs nothing else, but its capacity figures mean nothing.

On the command line: `python -m tools.engine which`, `install`, or `run [COMMAND ...]`.
"""

import argparse
import contextlib
import importlib.metadata
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict
from urllib.parse import urlsplit

from tools import dynamodb_local
from tools.server import (
    RunningServer,
    Server,
    ServerUnavailableError,
    end_process,
    interrupted_later,
    until_interrupted,
)

ENDPOINT_VARIABLE = "LANGGRAPH_DYNAMODB_ENDPOINT"

EXTERNAL = "external"
DYNAMODB_LOCAL = "dynamodb-local"
MOTO = "moto"
KINDS = (EXTERNAL, DYNAMODB_LOCAL, MOTO)

GRACE_SECONDS = 1.0

REGION_NAME = "us-east-1"
# DynamoDB Local takes any credentials of letters and digits. Whatever account this machine is configured for
# is put out of sight, so that no engine of ours can ever be mistaken for AWS.
LOCAL_ENVIRONMENT: Mapping[str, str] = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": REGION_NAME,
    "AWS_REGION": REGION_NAME,
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
FOREIGN_VARIABLES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL")
# A proxy cannot reach this machine. Python reads the first, other programs read either.
NO_PROXY_VARIABLES = ("no_proxy", "NO_PROXY")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ClientOptions(TypedDict):
    """The keyword arguments that make boto3 and aiobotocore reach an engine."""

    endpoint_url: str
    region_name: str
    aws_access_key_id: str
    aws_secret_access_key: str


@dataclass(frozen=True)
class Engine:
    """A running engine: where it answers and what it is called."""

    kind: str
    name: str
    endpoint_url: str
    region_name: str = REGION_NAME
    access_key_id: str = LOCAL_ENVIRONMENT["AWS_ACCESS_KEY_ID"]
    secret_access_key: str = LOCAL_ENVIRONMENT["AWS_SECRET_ACCESS_KEY"]

    def client_options(self) -> ClientOptions:
        """Build the keyword arguments with which `boto3.client("dynamodb", ...)` reaches this engine."""
        return {
            "endpoint_url": self.endpoint_url,
            "region_name": self.region_name,
            "aws_access_key_id": self.access_key_id,
            "aws_secret_access_key": self.secret_access_key,
        }

    def environment(self) -> dict[str, str]:
        """Build the environment in which every AWS library of a child process reaches this engine."""
        inherited = {name: value for name, value in os.environ.items() if name not in FOREIGN_VARIABLES}
        return {**inherited, **LOCAL_ENVIRONMENT, "AWS_ENDPOINT_URL_DYNAMODB": self.endpoint_url}


@dataclass(frozen=True)
class Recipe:
    """An engine that can run here."""

    kind: str
    server: Server | RunningServer

    @contextlib.contextmanager
    def run(self) -> Iterator[Engine]:
        """Run the engine for the duration of the context; an external one is only checked.

        Yields:
            The engine, answering requests.

        Raises:
            ServerUnavailableError: It does not answer; the message says why, or what to do.
        """
        with self.server.run() as address, _no_proxy_for(address):
            yield Engine(self.kind, self.server.name, address)


@contextlib.contextmanager
def _no_proxy_for(address: str) -> Iterator[None]:
    """Let no proxy of the environment stand between this process, or its children, and this machine."""
    host = urlsplit(address).hostname
    before = {name: os.environ.get(name) for name in NO_PROXY_VARIABLES}
    try:
        if host in LOOPBACK:
            for name, hosts in before.items():
                os.environ[name] = ",".join(filter(None, (hosts, host)))
        yield
    finally:
        for name, hosts in before.items():
            os.environ.pop(name, None)
            if hosts is not None:
                os.environ[name] = hosts


def find(kind: str) -> Recipe:
    """Find out how to run an engine of one kind, without installing anything.

    Args:
        kind: One of `KINDS`.

    Returns:
        The recipe to run it with.

    Raises:
        ServerUnavailableError: It cannot run here; the message names what is missing and how to get it.
    """
    return Recipe(kind, FINDERS[kind]())


def find_all() -> dict[str, Recipe | ServerUnavailableError]:
    """Find out how to run an engine of each kind.

    Returns:
        For each kind, in the order of preference, its recipe or the reason why it cannot run here.
    """
    return {kind: _found_or_reason(kind) for kind in KINDS}


def find_best() -> Recipe:
    """Find the first kind of `KINDS` that can run here.

    Returns:
        The recipe to run it with.

    Raises:
        ServerUnavailableError: None can; the message names what each of them misses.
    """
    found = find_all()
    recipes = [recipe for recipe in found.values() if isinstance(recipe, Recipe)]
    if not recipes:
        raise ServerUnavailableError("\n".join(["No DynamoDB engine can run here.", *describe(found)]))
    return recipes[0]


def describe(found: Mapping[str, Recipe | ServerUnavailableError]) -> list[str]:
    """Write what `find_all` found, for a person.

    Args:
        found: For each kind its recipe or the reason why it cannot run.

    Returns:
        One line for each kind.
    """
    return [
        f"{kind}: {entry.server.name if isinstance(entry, Recipe) else f'not available. {entry}'}"
        for kind, entry in found.items()
    ]


def _found_or_reason(kind: str) -> Recipe | ServerUnavailableError:
    try:
        return find(kind)
    except ServerUnavailableError as reason:
        return reason


def _find_external() -> RunningServer:
    address = os.environ.get(ENDPOINT_VARIABLE)
    if not address:
        raise ServerUnavailableError(f"{ENDPOINT_VARIABLE} is not set.")
    return RunningServer(f"the engine at {address}", address)


def _find_moto() -> Server:
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
        raise ServerUnavailableError("moto's server is not installed: pip install 'moto[server]'.")
    command = (sys.executable, "-m", "tools.moto_server", "{port}")
    return Server(f"moto {importlib.metadata.version('moto')}", command)


FINDERS: Mapping[str, Callable[[], Server | RunningServer]] = {
    EXTERNAL: _find_external,
    DYNAMODB_LOCAL: dynamodb_local.find,
    MOTO: _find_moto,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: The words after the program's name; by default those it was called with.

    Returns:
        The exit status: 0 if the engine could be had.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tools.engine", description="A DynamoDB engine on this machine."
    )
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("which", help="say which engines can run here, and what the others miss")
    actions.add_parser("install", help="install DynamoDB Local")
    run = actions.add_parser("run", help="run an engine until Ctrl-C, or for the duration of a command")
    run.add_argument(
        "--kind", choices=KINDS, help="the kind of engine; by default the best that can run here"
    )
    run.add_argument("command", nargs=argparse.REMAINDER, help="a command to run against the engine")
    options = parser.parse_args(arguments)
    try:
        if options.action == "which":
            print("\n".join(describe(find_all())))
            return 0
        if options.action == "install":
            print(f"{dynamodb_local.install().name} is installed.")
            return 0
        return _run(find(options.kind) if options.kind else find_best(), options.command)
    except ServerUnavailableError as error:
        print(error, file=sys.stderr)
        return 1


def _run(recipe: Recipe, command: Sequence[str]) -> int:
    with recipe.run() as engine:
        print(f"{engine.name} answers at {engine.endpoint_url}", flush=True)
        if command:
            return run_command(command, engine)
        print("Ctrl-C ends it.", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


def run_command(command: Sequence[str], engine: Engine) -> int:
    """Run a command with an engine in its environment; return its exit status. It ends with whoever runs it."""
    with contextlib.ExitStack() as stack:
        with interrupted_later():
            process = subprocess.Popen(command, env=engine.environment())  # noqa: S603  # Asked for.
            stack.callback(end_process, process)
        try:
            return process.wait()
        except KeyboardInterrupt:
            # Ctrl-C reaches the command as well, which may have something to clean up.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            raise


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
