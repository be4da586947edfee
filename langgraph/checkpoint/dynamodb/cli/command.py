"""Turns a function into a command: the options that all commands have, and an exit code for every end."""

import copy
import functools
import inspect
import re
from collections.abc import Callable, Collection
from errno import ENOSPC
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_origin

import typer
from langgraph.store.base import InvalidNamespaceError

from .. import errors
from .._format.codec import UnreadableError
from .._operations.arguments import COUNT_MAX
from .._runtime.failures import account_remedy, error_code, is_transient, outage_remedy
from . import CommandError, Exit
from .context import CommandContext, ConnectionArguments, in_options
from .output import Output

ThreadId: TypeAlias = Annotated[str, typer.Argument(metavar="THREAD", help="The id of the thread.")]
Namespace: TypeAlias = Annotated[
    str, typer.Option("--namespace", metavar="NS", help="The namespace of a subgraph; the root's is empty.")
]
Limit: TypeAlias = Annotated[
    int, typer.Option(min=0, max=COUNT_MAX, metavar="N", help="How many to list, the newest; 0 lists all.")
]
# What a docstring says below `Options:` of a parameter: its name, how help calls its value, and its text.
_DOCUMENTED = re.compile(r"^ +(\w+)(?: (\S+))?: (.+)$", re.MULTILINE)
# Of the options below, those that only some commands have.
_OF_SOME = ("parallel", "yes", "dry_run")


def _shared(
    *,
    parallel: Annotated[int, typer.Option(min=1, max=64)] = 4,
    yes: Annotated[bool, typer.Option("--yes", "-y")] = False,
    dry_run: bool = False,
    table: str | None = None,
    endpoint_url: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    config: Path | None = None,
    json: bool = False,
) -> CommandContext:
    """Make the context from the options that commands share.

    Options:
        parallel N: How many threads to process at a time.
        yes: Change things without asking.
        dry_run: Say what would be changed, and change nothing.
        table NAME: Name or ARN of the table; otherwise as configured.
        endpoint_url URL: Another endpoint than AWS's own, such as http://localhost:8000 for DynamoDB Local.
        region REGION: The AWS region; otherwise as configured, or as boto3 finds it.
        profile PROFILE: The AWS profile; otherwise as configured, or as boto3 finds it.
        config FILE: A YAML file that configures the checkpointer; otherwise the environment does, by
            LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME and the like.
        json: Print one JSON document, for scripts.
    """
    connection = ConnectionArguments(table, endpoint_url, region, profile, config)
    return CommandContext(connection, Output(as_json=json), yes=yes, dry_run=dry_run, parallel=parallel)


def _documented(function: Callable[..., Any]) -> tuple[str, dict[str, inspect.Parameter]]:
    """Return a function's help, and its parameters for Typer, with their texts. Keywords are options."""
    help_, _, options = (inspect.getdoc(function) or "").partition("\n\nOptions:\n")
    texts = {name: told for name, *told in _DOCUMENTED.findall(re.sub(r"\n {8,}", " ", options))}
    parameters = {}
    # `typing.get_type_hints` wraps the annotation of an option whose default is None in Optional on Python 3.10.
    for name, each in inspect.signature(function, eval_str=True).parameters.items():
        kind = each.annotation
        if get_origin(kind) is Annotated:
            told = copy.copy(kind.__metadata__[0])
            kind = kind.__origin__
        elif each.kind is inspect.Parameter.KEYWORD_ONLY:
            told = typer.Option(f"--{name.strip('_').replace('_', '-')}")
        else:
            told = typer.Argument(show_default=False)
        if name in texts:
            metavar, told.help = texts[name]
            told.metavar = metavar or None
        parameters[name] = each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, told])
    return help_, parameters


def command(function: Callable[..., None], some: Collection[str]) -> Callable[..., None]:
    """Make a command of a function that takes a context first, and then options of its own.

    Args:
        function: The function. Its docstring is the help, and has the texts of its own options below `Options:`. Its
            exceptions become a message and an exit code.
        some: The options of `_shared` that it has, of those that not every command has.

    Returns:
        A function that Typer takes as a command, with the shared options.
    """
    help_, parameters = _documented(function)
    own = list(parameters.values())[1:]
    shared = {
        name: each for name, each in _documented(_shared)[1].items() if name in some or name not in _OF_SOME
    }

    @functools.wraps(function)
    def run(**options: Any) -> None:
        context = _shared(**{name: options.pop(name) for name in shared})
        context.has_dry_run = "dry_run" in some
        try:
            with context.opened:
                function(context, **options)
        except KeyboardInterrupt:
            context.output.note("interrupted")
            raise typer.Exit(Exit.INTERRUPTED) from None
        except Exception as error:
            end = explained(error, context.table_name)
            if end is None:
                raise
            # The message names the region.
            is_missing = error_code(error.__cause__ or error) == "ResourceNotFoundException"
            endpoint = context.custom_endpoint if is_missing else None
            context.output.error(f"{end}; the endpoint is {endpoint}" if endpoint else str(end))
            raise typer.Exit(end.code) from error

    keywords = [*own, *shared.values()]
    # Typer reads both the signature and the annotations.
    run.__dict__["__signature__"] = inspect.Signature(keywords)
    run.__annotations__ = {each.name: each.annotation for each in keywords}
    run.__doc__ = help_
    return run


_CODES: tuple[tuple[type[Exception], Exit], ...] = (
    (errors.CheckpointerInputError, Exit.USAGE),
    (InvalidNamespaceError, Exit.USAGE),
    (errors.CheckpointSerializationError, Exit.USAGE),
    # A longer prefix reads less.
    (errors.SearchLimitError, Exit.USAGE),
    (errors.CheckpointNotFoundError, Exit.NOT_FOUND),
    (errors.CheckpointerConfigurationError, Exit.CONFIGURATION),
    (errors.CheckpointCorruptionError, Exit.DAMAGED),
    (errors.CheckpointFormatError, Exit.DAMAGED),
    # Busy threads, and batches that DynamoDB did not accept.
    (errors.CheckpointerError, Exit.TRY_AGAIN),
)


def explained(error: Exception, table_name: str) -> CommandError | None:
    """Return the error that the user sees, or None for an unforeseen one, whose traceback is needed."""
    if isinstance(error, CommandError):
        return error
    for kind, code in _CODES:
        if isinstance(error, kind):
            return CommandError(code, _says(error))
    if isinstance(error, OSError) and error.filename is not None:
        return CommandError(Exit.USAGE, f"{error.filename} cannot be used: {error.strerror}")
    if isinstance(error, OSError) and error.errno == ENOSPC:
        return CommandError(Exit.FAILED, f"the output could not be written: {error.strerror}")
    if isinstance(error, RecursionError):
        return CommandError(Exit.FAILED, "a value is nested more deeply than can be shown")
    remedy = account_remedy(table_name, error)
    if remedy is not None:
        return CommandError(Exit.CONFIGURATION, in_options(remedy))
    if is_transient(error):
        return CommandError(Exit.TRY_AGAIN, in_options(outage_remedy(table_name, error)))
    # An error of AWS without a remedy says what is wrong; a traceback of this program would not add to it.
    return CommandError(Exit.FAILED, str(error)) if hasattr(error, "response") else None


def _says(error: Exception) -> str:
    """Return the message of an error of this package. If AWS caused it, name the options of the command line."""
    if isinstance(error, UnreadableError):
        return f"{error}; here these are `encryption_key` and `serde` in the file that --config names"
    # Other errors name what is in a file, or quote stored values.
    is_of_aws = type(error.__cause__).__module__.startswith("botocore")
    return in_options(str(error)) if is_of_aws else str(error)
