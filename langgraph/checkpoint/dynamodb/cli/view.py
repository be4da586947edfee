"""`view`: a page that shows what a thread was, step by step."""

from __future__ import annotations

import webbrowser
from secrets import token_urlsafe
from typing import Annotated

import typer

from langgraph.checkpoint.dynamodb.cli.desk import Desk
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.view.answers import Answers
from langgraph.checkpoint.dynamodb.view.record import Session

_EXTRA = ("starlette", "uvicorn")


def view(
    desk: Desk,
    thread_id: Annotated[
        str | None, typer.Argument(metavar="THREAD", help="The id of the thread to begin with.")
    ] = None,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 is one that is free.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Show threads on a page in the browser, step by step.

    The page is served from this machine to this machine, to who has the address with its random token, until Ctrl-C.
    It needs the reader's policy, and changes nothing. Values are read without importing or running anything that they
    name.
    """
    try:
        from langgraph.checkpoint.dynamodb.view.server import PageServer  # noqa: PLC0415 - may not be installed.
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        msg = f"{error.name} is not installed; pip install 'langgraph-dynamodb[view]'"
        raise CommandError(Exit.CONFIGURATION, msg) from error
    answers = Answers(Session(desk.saver), thread_id)
    with PageServer(answers, port, token_urlsafe(32)) as server:
        desk.output.text(server.address)
        desk.output.note("Ctrl-C ends it.")
        if browser:
            webbrowser.open(server.address)
        server.run()
