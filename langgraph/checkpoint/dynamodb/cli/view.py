"""`view`: a page that shows a thread step by step."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from ..version import requirement
from ..view.responses import Responses
from ..view.thread_view import Session
from .context import CommandContext
from .outcome import CommandError, Exit

_EXTRA = ("starlette", "uvicorn")


def view(
    context: CommandContext,
    thread_id: Annotated[
        str | None, typer.Argument(metavar="THREAD", help="The id of the thread to begin with.")
    ] = None,
    *,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, metavar="N", help="The port; 0 takes a free one."),
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Show threads on a page in the browser, step by step.

    It serves the page to this machine only, until Ctrl-C. Anyone on this machine who has the address with its random
    token can open it. It needs the reader's policy, and changes nothing. Nothing that a value names is imported or run.
    """
    try:
        from ..view.server import PageServer  # noqa: PLC0415 - may not be installed.
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
