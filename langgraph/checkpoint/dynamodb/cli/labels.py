"""Namespaces of memories as text: labels with slashes between them, so any label can be written."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias
from urllib.parse import unquote

import typer
from langgraph.store.base import InvalidNamespaceError, SearchOp, validate_op_namespace

from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit

HELP = "Labels with slashes between them, such as users/ada. Write a slash in a label as %2F, and % as %25"
Labels: TypeAlias = Annotated[str, typer.Argument(metavar="NAMESPACE", help=f"{HELP}.")]
Prefix: TypeAlias = Annotated[
    str, typer.Argument(metavar="[NAMESPACE]", help=f"{HELP}; without it, all.", show_default=False)
]
# What separates labels, begins an escape, or is a character that a terminal obeys.
_ESCAPED = re.compile("[\x00-\x1f%/\x7f]")
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


def parse_labels(text: str) -> tuple[str, ...]:
    """Parse a namespace; an empty text is the one of no labels.

    Raises:
        CommandError: LangGraph refuses the namespace, or a percent sign begins no escape.
    """
    if not text:
        return ()
    try:
        if _NO_ESCAPE.search(text):
            msg = "a % begins two hexadecimal digits; write % as %25"
            raise ValueError(msg)
        labels = tuple(unquote(each, errors="strict") for each in text.split("/"))
        validate_op_namespace(SearchOp(labels))
    except (InvalidNamespaceError, ValueError) as error:
        msg = f"the namespace {text!r} cannot be used: {error}"
        raise CommandError(Exit.USAGE, msg) from error
    return labels


def one_namespace(text: str) -> tuple[str, ...]:
    """Parse a namespace of at least one label.

    Raises:
        CommandError: There is none, or it cannot be used.
    """
    labels = parse_labels(text)
    if not labels:
        raise CommandError(Exit.USAGE, "the namespace is empty; give its labels, such as users/ada")
    return labels


def labels_text(labels: tuple[str, ...]) -> str:
    """Return a namespace as `parse_labels` reads it."""
    return "/".join(_ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", each) for each in labels)
