"""A server program on this machine: started on a free port, waited for, and ended with whoever started it.

Owns: processes, ports and the waiting. Must not know: which program it runs.
"""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any
from urllib.parse import urlsplit

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 10.0
ANSWER_SECONDS_MAX = 5.0
POLL_SECONDS = 0.1
# Between choosing a free port and the server's listening on it, another process may take the port.
START_ATTEMPTS_MAX = 3
PRINTED_CHARACTERS_MAX = 2_000

# Runs a command until it ends or standard input does. The pipe behind that input closes when its owner closes
# it, and also when its owner is killed, so a server never outlives the process that started it.
RUN_UNTIL_INPUT_ENDS = """
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
{ cat <&3 >/dev/null; kill "$server"; } &
exec 3<&-
wait "$server"
"""


INTERRUPTED = 130


def until_interrupted(program: Callable[[], int]) -> int:
    """Run a program that Ctrl-C and SIGTERM end alike: it cleans up, and leaves no traceback.

    Args:
        program: Gets a `KeyboardInterrupt`, once.

    Returns:
        The program's exit status.
    """

    def interrupt(*_: object) -> None:
        # What is being cleaned up is to be finished.
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, interrupt)
    try:
        return program()
    except KeyboardInterrupt:
        return INTERRUPTED


@contextlib.contextmanager
def interrupted_later() -> Iterator[None]:
    """Let an interrupt that comes within the block take effect at its end.

    A process that starts in the block would have no owner yet: `Popen` would be interrupted after the process has
    started, and nobody would end it.
    """
    arrived: list[int] = []
    handlers = {
        each: signal.signal(each, lambda number, _frame: arrived.append(number))
        for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
    for number in arrived[:1]:
        signal.raise_signal(number)


def end_process(process: subprocess.Popen[Any]) -> None:
    """End a process, if need be by force."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class ServerUnavailableError(RuntimeError):
    """The server cannot run here; the message says what is missing and how to get it."""


def _answers(address: str) -> bool:
    """Tell whether anything at all comes back: without a signed request an engine answers with an error."""
    url = urlsplit(address)
    connection_class = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = connection_class(url.hostname or "", url.port, timeout=ANSWER_SECONDS_MAX)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


@dataclass(frozen=True)
class Server:
    """A program that was found: what to call it, and its command with `{port}` where its port goes.

    It runs as another user where one is named, and is up when something answers at its address.
    """

    name: str
    command: tuple[str, ...]
    user: str | None = None
    answers: Callable[[str], bool] = _answers

    @contextlib.contextmanager
    def run(self) -> Iterator[str]:
        """Run the server for the duration of the context.

        Yields:
            The address at which it answers.

        Raises:
            ServerUnavailableError: It does not answer in time; the message ends with what it printed.
        """
        for attempt in range(1, START_ATTEMPTS_MAX + 1):
            port = _free_port()
            address = f"http://127.0.0.1:{port}"
            command = [part.replace("{port}", str(port)) for part in self.command]
            with (
                tempfile.TemporaryFile("w+", errors="replace") as printed,
                _process(command, printed, self.user) as process,
            ):
                if _wait_until(partial(self.answers, address), process):
                    yield address
                    return
                printed.seek(0)
                last_words = printed.read()[-PRINTED_CHARACTERS_MAX:]
            if attempt == START_ATTEMPTS_MAX:
                raise ServerUnavailableError(
                    f"{self.name} did not start on port {port}. It printed:\n{last_words}"
                )


@dataclass(frozen=True)
class RunningServer:
    """A server that somebody else started and will end: its name and its address."""

    name: str
    address: str

    @contextlib.contextmanager
    def run(self) -> Iterator[str]:
        """Make sure that the server answers.

        Yields:
            Its address.

        Raises:
            ServerUnavailableError: It does not answer.
        """
        if not _answers(self.address):
            raise ServerUnavailableError(f"Nothing answers at {self.address}.")
        yield self.address


@contextlib.contextmanager
def _process(command: Sequence[str], printed: IO[str], user: str | None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command that ends with the context or with this process, whichever ends first."""
    process = subprocess.Popen(  # noqa: S603  # To run what it is given is this module's purpose.
        ["/bin/sh", "-c", RUN_UNTIL_INPUT_ENDS, "server", *command],
        stdin=subprocess.PIPE,
        stdout=printed,
        stderr=subprocess.STDOUT,
        # Ctrl-C is for whoever uses the server, who still needs it to clean up.
        start_new_session=True,
        user=user,
    )
    try:
        yield process
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            # The session is the process's own, so nothing but the server is in its group.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_until(answers: Callable[[], bool], process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        # Looked at once more: if the server has ended, it was somebody else on its port who answered.
        if answers() and process.poll() is None:
            return True
        time.sleep(POLL_SECONDS)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
