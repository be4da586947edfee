"""A Postgres server for tests and benchmarks, of the system's binaries, with a database for whoever asks for one."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tools.server import Server, ServerUnavailableError

_PROGRAMS = ("initdb", "postgres")
# Debian keeps them out of the search path.
_FOLDERS = Path("/usr/lib/postgresql")
_SUPERUSER = "postgres"
# Whoever may run the server where root may not.
_USERS = ("postgres", "nobody")
# Nothing of a test has to outlive the machine's power.
_IN_A_HURRY = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "autovacuum=off")


@dataclass(frozen=True)
class Postgres:
    """A server that runs: its address with a user, without a database."""

    address: str

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """Make an empty database for the duration of the context.

        Yields:
            Its connection string.
        """
        name = f"test_{uuid.uuid4().hex}"
        self._execute(sql.SQL("CREATE DATABASE {}"), name)
        yield f"{self.address}/{name}"
        # With force, since a test that failed may have left connections.
        self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)"), name)

    def _execute(self, statement: sql.SQL, name: str) -> None:
        with psycopg.connect(f"{self.address}/postgres", autocommit=True) as connection:
            connection.execute(statement.format(sql.Identifier(name)))


@contextlib.contextmanager
def run_postgres(settings: Sequence[str] = _IN_A_HURRY) -> Iterator[Postgres]:
    """Run a server for the duration of the context; it ends with this process in any case.

    Args:
        settings: What differs from Postgres's own defaults, as `name=value`.

    Yields:
        The server.

    Raises:
        ServerUnavailableError: It cannot run here; the message says what is missing.
    """
    folder, user = _folder_of_programs(), _user()
    with tempfile.TemporaryDirectory(prefix="postgres-") as place:
        if user is not None:
            os.chown(place, pwd.getpwnam(user).pw_uid, -1)
        data = f"{place}/data"
        _make_cluster(folder, data, user)
        options = ("listen_addresses=127.0.0.1", "unix_socket_directories=", *settings)
        command = (f"{folder}/postgres", "-D", data, "-p", "{port}")
        server = Server("Postgres", (*command, *(f"--{each}" for each in options)), user, _answers)
        with server.run() as address:
            yield Postgres(_with_user(address))


def _folder_of_programs() -> Path:
    """The folder of the newest binaries that are installed."""
    found = [Path(path).resolve().parent for path in filter(None, map(shutil.which, _PROGRAMS))]
    found += sorted(_FOLDERS.glob("*/bin"), key=lambda path: [path.parent.name.zfill(4)], reverse=True)
    for folder in found:
        if all((folder / program).exists() for program in _PROGRAMS):
            return folder
    msg = (
        f"Postgres needs its programs {' and '.join(_PROGRAMS)}, in the PATH or below {_FOLDERS}: install the"
        " package `postgresql`."
    )
    raise ServerUnavailableError(msg)


def _user() -> str | None:
    """Whom to run the server as, where this process is root's, which Postgres refuses."""
    if os.geteuid() != 0:
        return None
    known = {each.pw_name for each in pwd.getpwall()}
    for name in _USERS:
        if name in known:
            return name
    msg = f"Postgres does not run as root: run the tests as another user, or make one of the users {', '.join(_USERS)}."
    raise ServerUnavailableError(msg)


def _make_cluster(folder: Path, data: str, user: str | None) -> None:
    command = [f"{folder}/initdb", "--pgdata", data, "--username", _SUPERUSER, "--auth", "trust", "--no-sync"]
    made = subprocess.run(  # noqa: S603  # The system's own program.
        [*command, "--encoding", "UTF8", "--no-locale"],
        user=user,
        # It goes back to the folder that it was started in, which the other user may not enter.
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        msg = f"Postgres could not make its files. It printed:\n{made.stdout}{made.stderr}"
        raise ServerUnavailableError(msg)


def _with_user(address: str) -> str:
    return f"postgresql://{_SUPERUSER}@{urlsplit(address).netloc}"


def _answers(address: str) -> bool:
    try:
        psycopg.connect(f"{_with_user(address)}/postgres", connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
