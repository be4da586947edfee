"""Endpoints of a migration, as a person names them: a connection string, a file, a table, or a function."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from ..errors import CheckpointerConfigurationError, CheckpointerInputError
from ..saver import DynamoDBSaver
from .saver_endpoint import SaverEndpoint
from .table import TableEndpoint

ENDPOINTS = """\
postgresql://user:password@host/database    a database of LangGraph's PostgresSaver or PostgresStore
sqlite:PATH                                 a file of LangGraph's SqliteSaver or SqliteStore
module:function                             what returns any other saver or store, such as langgraph-checkpoint-aws's,
                                            or a context manager that gives one\
"""

# The packages that each endpoint needs beside this one, by its scheme.
_PACKAGES = {
    "postgresql": "langgraph-checkpoint-postgres psycopg[binary]",
    "postgres": "langgraph-checkpoint-postgres psycopg[binary]",
    "sqlite": "langgraph-checkpoint-sqlite",
}


@contextmanager
def open_endpoint(endpoint: str, *, parallel: int = 1, as_target: bool = False) -> Iterator[SaverEndpoint]:
    """Open an endpoint by its name.

    Args:
        endpoint: One of `ENDPOINTS`.
        parallel: How many threads will be moved at a time.
        as_target: Whether to move threads to it, and so create missing tables.

    Yields:
        The endpoint. It is closed at the end if it was opened here.

    Raises:
        CheckpointerInputError: The endpoint is not one of `ENDPOINTS`.
        CheckpointerConfigurationError: The endpoint cannot be reached, has no checkpoints, or its package is not
            installed.
    """
    kind, rest = parse_endpoint(endpoint)
    with ExitStack() as stack:
        if kind not in _PACKAGES:
            yield endpoint_of(stack.enter_context(made_by_function(kind, rest, BaseCheckpointSaver)))
            return
        found: SaverEndpoint
        try:
            if kind == "sqlite":
                from .sqlite import open_sqlite  # noqa: PLC0415

                # Both a path, and the address form that others write for it.
                found = open_sqlite(rest.removeprefix("//"), as_target=as_target)
            else:
                from .postgres import open_postgres  # noqa: PLC0415

                found = open_postgres(endpoint, connections=parallel, as_target=as_target)
        except ImportError as error:
            msg = f"{error}; install what reads such an endpoint: pip install {_PACKAGES[kind]}"
            raise CheckpointerConfigurationError(msg) from error
        stack.callback(found.close)
        yield found


def parse_endpoint(endpoint: str) -> tuple[str, str]:
    """Split an endpoint at its first colon.

    Raises:
        CheckpointerInputError: It has none; the message lists the endpoints that there are.
    """
    kind, _, rest = endpoint.partition(":")
    if not rest:
        # It may be a connection string with a password, so it is not shown.
        msg = f"this names no place of threads or memories; give one of\n{ENDPOINTS}"
        raise CheckpointerInputError(msg)
    return kind, rest


@contextmanager
def made_by_function(module: str, function: str, kind: type[Any]) -> Iterator[Any]:
    """Yield the saver or store that a function of the caller's returns, or a context manager from it yields.

    Raises:
        CheckpointerConfigurationError: The function cannot be imported, fails, or returns something else.
    """
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        msg = f"{module}:{function} cannot be imported ({error}); give one of\n{ENDPOINTS}"
        raise CheckpointerConfigurationError(msg) from error
    finally:
        sys.path.remove("")
    try:
        made = found()
    except Exception as error:
        msg = f"{module}:{function}() failed: {type(error).__name__}: {error}"
        raise CheckpointerConfigurationError(msg) from error
    with ExitStack() as stack:
        if not isinstance(made, kind) and isinstance(made, AbstractContextManager):
            made = stack.enter_context(made)
        if not isinstance(made, kind) or type(made).__name__.startswith("Async"):
            msg = f"{module}:{function} returned a {type(made).__name__}; let it return a blocking {kind.__name__}"
            raise CheckpointerConfigurationError(msg)
        yield made


def endpoint_of(saver: BaseCheckpointSaver[Any]) -> SaverEndpoint:
    """Return the endpoint of a saver. Known savers have one that reads them best.

    Raises:
        CheckpointerConfigurationError: The saver can only be called on an event loop.
    """
    if isinstance(saver, DynamoDBSaver):
        return TableEndpoint(saver)
    name = type(saver).__name__
    if name.startswith("Async"):
        msg = f"{name} is an async saver; give its blocking counterpart"
        raise CheckpointerConfigurationError(msg)
    home = type(saver).__module__
    if home.startswith("langgraph.checkpoint.postgres") and name == "PostgresSaver":
        from .postgres import PostgresEndpoint  # noqa: PLC0415

        return PostgresEndpoint(saver)
    if home.startswith("langgraph.checkpoint.sqlite") and name == "SqliteSaver":
        from .sqlite import SqliteEndpoint  # noqa: PLC0415

        return SqliteEndpoint(saver)
    if home.startswith("langgraph_checkpoint_aws.checkpoint.dynamodb"):
        from .amazon import AmazonEndpoint  # noqa: PLC0415

        return AmazonEndpoint(saver)
    return SaverEndpoint(saver)
