"""The findings of `doctor`, and what errors mean for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .._format.schema import DOCS_COMMAND
from .._runtime.failures import account_remedy, error_code, is_transient, outage_remedy
from .connection import in_options

_DENIED = ("AccessDenied", "AccessDeniedException")


Verdict: TypeAlias = Literal["ok", "warning", "problem", "unknown"]
"""How serious a finding is. What could not be checked is unknown."""


@dataclass(frozen=True)
class Finding:
    """The result of one check, with its remedy."""

    check: str
    verdict: Verdict
    says: str
    remedy: str = ""


def asked(request: Callable[..., Any], **params: Any) -> Any:
    """Make a request and return its response, or the error that it raised."""
    try:
        return request(**params)
    except Exception as error:  # noqa: BLE001 - the error is the result.
        return error


def is_denied(outcome: Any) -> bool:
    """Tell whether the caller has no right to a request."""
    return error_code(outcome) in _DENIED


def failed(check: str, table_name: str, error: Exception) -> Finding:
    """Return the finding for an error of a check."""
    if is_transient(error):
        return Finding(check, "problem", str(error), in_options(outage_remedy(table_name, error)))
    remedy = (
        account_remedy(table_name, error) or f"`{DOCS_COMMAND} runbook` says what to do about most errors"
    )
    return Finding(check, "problem", str(error), in_options(remedy))
