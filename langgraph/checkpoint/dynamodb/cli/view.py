"""`view`: a page that shows a thread step by step."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.streams import PIPE, written_file
from langgraph.checkpoint.dynamodb.cli.values import counted, sized
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.view import STATIC
from langgraph.checkpoint.dynamodb.view.bundle import bundled
from langgraph.checkpoint.dynamodb.view.export import Exporter
from langgraph.checkpoint.dynamodb.view.masks import PATTERNS, Masks, parse_rule
from langgraph.checkpoint.dynamodb.view.responses import Responses
from langgraph.checkpoint.dynamodb.view.thread_view import Session

_EXTRA = ("starlette", "uvicorn")


# The browser stores recently opened threads by address, so the port is fixed.
PORT = 8487

Rules: TypeAlias = list[str] | None


def view(
    context: CommandContext,
    thread_id: Annotated[
        str | None, typer.Argument(metavar="THREAD", help="The id of the thread to begin with.")
    ] = None,
    *,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="N",
            help=f"The port; 0 takes a free one. By default {PORT}, or a free one if that is taken.",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the thread's page to a file that needs no server, and end."),
    ] = None,
    mask: Annotated[
        Rules,
        typer.Option(
            metavar="WHAT",
            help=f"Hide values of the export, but not their shape: {', '.join(PATTERNS)}, a /regular expression/, or"
            " keys such as account.key. May be given several times.",
        ),
    ] = None,
    leave_out: Annotated[
        Rules,
        typer.Option(
            metavar="WHAT",
            help="Leave whole values out of the export. Takes the same patterns, several times.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="With --export: replace a file without asking.")
    ] = False,
) -> None:
    """Show threads on a page in the browser, step by step.

    It serves the page to this machine only, until Ctrl-C. Anyone on this machine who has the address with its random
    token can open it. It needs the reader's policy, and changes nothing. Nothing that a value names is imported or run.
    An export contains encrypted values in plain text.
    """
    if export is not None:
        rules = [parse_rule(each, "masked") for each in mask or ()]
        rules += [parse_rule(each, "left out") for each in leave_out or ()]
        _export(context, thread_id, export, Masks(rules), yes=yes)
    elif mask or leave_out:
        msg = "--mask and --leave-out are for an export; give --export FILE"
        raise CommandError(Exit.USAGE, msg)
    else:
        _serve(context, thread_id, port, browser=browser)


def _export(context: CommandContext, thread_id: str | None, file: Path, masks: Masks, *, yes: bool) -> None:
    if thread_id is None:
        msg = "--export needs a thread; give its id"
        raise CommandError(Exit.USAGE, msg)
    with written_file(context, file, yes=yes) as stream:
        with context.output.progress("exporting checkpoints", None) as bar:
            exporter = Exporter(Session(context.saver), masks, bar.reach)
            document = exporter.export(thread_id)
        page = bundled(STATIC, document).encode()
        stream.write(page)
    if context.output.as_json:
        context.output.json({"file": str(file), "masks": document["masks"]})
        return
    for each in document["masks"]:
        context.output.note(f"{each['rule']}: {each['action']} {counted(each['times'], 'value')}")
    if not document["masks"]:
        context.output.note(
            "Nothing is masked: whoever has the file has all that the thread has, in the clear."
        )
    if file != PIPE:
        size = sized(len(page))
        context.output.text(f"{file}: {counted(len(document['documents']), 'document')}, {size}")


def _serve(context: CommandContext, thread_id: str | None, port: int | None, *, browser: bool) -> None:
    try:
        from langgraph.checkpoint.dynamodb.view.server import PageServer  # noqa: PLC0415 - may not be installed.
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        msg = f"{error.name} is not installed; pip install 'langgraph-dynamodb[view]'"
        raise CommandError(Exit.CONFIGURATION, msg) from error
    answers = Responses(Session(context.saver), thread_id)
    try:
        server = PageServer(answers, PORT if port is None else port)
    except CheckpointerInputError:
        if port is not None:
            raise
        server = PageServer(answers, 0)
    with server:
        context.output.result({"address": server.address}, server.address)
        context.output.note("Ctrl-C ends it.")
        if browser:
            webbrowser.open(server.invitation)
        server.run()
