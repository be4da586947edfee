"""The commands that serve until Ctrl-C: `gateway` for agents without AWS access, `view` for a person's browser."""

from __future__ import annotations

import json
import logging
import sys
import time
import webbrowser
from contextlib import closing, suppress
from importlib import import_module
from socket import IPPROTO_TCP, TCP_NODELAY, socket
from typing import TYPE_CHECKING, Annotated

import typer

from .._runtime.failures import is_of_this_machine
from ..version import requirement
from . import CommandError, Exit
from .context import CommandContext

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

_LOCAL = "127.0.0.1"
# On shutdown the process answers the requests under way. A client sends again what takes longer.
_GRACE_SECONDS = 45
_KEEP_ALIVE_SECONDS = 75
_EXTRA = ("starlette", "uvicorn")


class _JsonLines(logging.Formatter):
    """Formats each record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        # The gateway's access log logs dictionaries.
        said = record.msg if isinstance(record.msg, dict) else {"message": record.getMessage()}
        if record.exc_info and record.exc_info[0]:
            said["error"] = record.exc_info[0].__name__
        return json.dumps(line | said, default=str)


def gateway(
    context: CommandContext,
    *,
    host: str = _LOCAL,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    insecure: bool = False,
) -> None:
    """Serve agents that have no access to the table.

    It runs until SIGTERM or Ctrl-C, and then answers the requests under way. Configure who may do what under `gateway:`
    in the file of --config, or in environment variables such as LANGGRAPH_GATEWAY_PRINCIPALS; see `langgraph-dynamodb
    docs gateway`. It writes its log to standard error, one JSON object per line.

    Options:
        host ADDRESS: The address to listen on; 0.0.0.0 is every address of this machine.
        port N: The port; 0 takes a free one.
        insecure: Accept every request from this machine without authentication, and none from elsewhere. For
            development.
    """
    serve(context, _application(context, host, insecure=insecure), host, port)


def _application(context: CommandContext, host: str, *, insecure: bool) -> Starlette:
    try:
        from ..gateway.settings import load_options  # noqa: PLC0415 - an extra.
    except ModuleNotFoundError as error:
        msg = f"{error.name} is not installed; pip install {requirement('gateway')}"
        raise CommandError(Exit.CONFIGURATION, msg) from error
    if insecure and not is_of_this_machine(host):
        msg = f"--insecure is for {_LOCAL} and localhost; leave --host out, or configure principals"
        raise CommandError(Exit.USAGE, msg)
    source = context.connection.config
    return load_options(source).gateway(context.configured_saver, insecure=insecure, source=source)


def serve(context: CommandContext, application: Starlette, host: str, port: int) -> None:
    """Serve an application until the process is told to end. Requests under way are then answered."""
    import uvicorn  # noqa: PLC0415 - an extra.

    _raise_limit_of_connections()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        # The gateway has its own access log, and client addresses from a proxy's headers may be made up.
        access_log=False,
        proxy_headers=False,
        server_header=False,
        log_config=None,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    with closing(listen(config)) as listener:
        address = f"http://{listener.getsockname()[0]}:{listener.getsockname()[1]}"
        context.output.note(f"serving table {context.options.table_name} at {address}")
        uvicorn.Server(config).run(sockets=[listener])


def listen(config: uvicorn.Config) -> socket:
    """Return the socket of a server that is about to start. Clients that connect now only wait for the start."""
    listener = config.bind_socket()
    # asyncio sets this for sockets that it makes itself. Without it the body of a response waits until the client has
    # acknowledged the headers, which takes forty milliseconds on Linux.
    listener.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    listener.listen(config.backlog)
    return listener


def _raise_limit_of_connections() -> None:
    """Allow as many open files as this process may: with 1,024, slow connections of one client keep others out."""
    # Windows has no such module, and no such limit.
    with suppress(ModuleNotFoundError, ValueError, OSError):
        resource = import_module("resource")
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def view(
    context: CommandContext,
    thread_id: str | None = None,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser")] = True,
) -> None:
    """Show threads on a page in the browser, step by step.

    It serves the page to this machine only, until Ctrl-C. Anyone on this machine who has the address with its random
    token can open it. It needs the reader's policy, and changes nothing. Nothing that a value names is imported or run.

    Options:
        thread_id THREAD: The id of the thread to begin with.
        port N: The port; 0 takes a free one.
        browser: Open the page in a browser.
    """
    try:
        from ..view.responses import Responses  # noqa: PLC0415 - `gateway` does without the page.
        from ..view.server import PageServer  # noqa: PLC0415 - may not be installed.
        from ..view.thread_view import Session  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        msg = f"{error.name} is not installed; pip install {requirement('view')}"
        raise CommandError(Exit.CONFIGURATION, msg) from error
    with PageServer(Responses(Session(context.saver), thread_id, lambda: context.store), port) as server:
        context.output.result({"address": server.address}, server.address)
        context.output.note("Ctrl-C ends it.")
        if browser:
            webbrowser.open(server.invitation)
        server.run()
