"""`gateway`: the service for agents without AWS access, in this process."""

from __future__ import annotations

import json
import logging
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from langgraph.checkpoint.dynamodb.cli.desk import Desk
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit

if TYPE_CHECKING:
    from fastapi import FastAPI

_LOCAL = "127.0.0.1"
# What is under way when the process is told to end is answered; what takes longer is sent again by its client.
_GRACE_SECONDS = 45
_KEEP_ALIVE_SECONDS = 75


class _JsonLines(logging.Formatter):
    """A line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        # The gateway's journal says what it has in words of its own.
        said = record.msg if isinstance(record.msg, dict) else {"message": record.getMessage()}
        if record.exc_info and record.exc_info[0]:
            said["error"] = record.exc_info[0].__name__
        return json.dumps(line | said, default=str)


def gateway(
    desk: Desk,
    *,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where to listen; 0.0.0.0 is every address of this machine."),
    ] = _LOCAL,
    port: Annotated[
        int, typer.Option(metavar="N", help="The port; 0 takes one that is free.", min=0, max=65535)
    ] = 8000,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", help="Let anybody on this machine do anything, and nobody else; for development."
        ),
    ] = False,
) -> None:
    """Serve agents that have no access to the table.

    It runs until SIGTERM or Ctrl-C, and then answers what is under way. Who may ask for what stands under `gateway:` in
    the file that --config names, or in the environment, in LANGGRAPH_GATEWAY_PRINCIPALS and others (docs/gateway.md).
    Its log is lines of JSON on standard error.
    """
    serve(desk, _application(desk, host, insecure=insecure), host, port)


def _application(desk: Desk, host: str, *, insecure: bool) -> FastAPI:
    try:
        from langgraph.checkpoint.dynamodb.gateway.authentication import (  # noqa: PLC0415 - an extra.
            is_of_this_machine,
        )
        from langgraph.checkpoint.dynamodb.gateway.settings import load_options  # noqa: PLC0415
    except ModuleNotFoundError as error:
        msg = f"{error.name} is not installed; pip install 'langgraph-dynamodb[gateway]'"
        raise CommandError(Exit.CONFIGURATION, msg) from error
    if insecure and not is_of_this_machine(host):
        msg = f"--insecure is for {_LOCAL} and localhost; leave --host out, or configure who may ask"
        raise CommandError(Exit.USAGE, msg)
    return load_options(desk.reach.config).gateway(desk.configured_saver, insecure=insecure)


def serve(desk: Desk, application: FastAPI, host: str, port: int) -> None:
    """Serve an application until the process is told to end; what is under way then is answered."""
    import uvicorn  # noqa: PLC0415 - an extra.

    from langgraph.checkpoint.dynamodb.gateway.listening import Http, listen  # noqa: PLC0415

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        http=Http,
        # The journal has the requests, and names of clients that a proxy may have made up are not believed.
        access_log=False,
        proxy_headers=False,
        server_header=False,
        log_config=None,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    with closing(listen(config)) as socket:
        address = f"http://{socket.getsockname()[0]}:{socket.getsockname()[1]}"
        desk.output.note(f"serving table {desk.options.table_name} at {address}")
        uvicorn.Server(config).run(sockets=[socket])
