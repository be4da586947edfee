"""AWS IAM: the identity that a function URL or API Gateway has verified by the request's signature (SigV4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from starlette.requests import HTTPConnection

from langgraph.checkpoint.dynamodb.gateway.authentication import found_in
from langgraph.checkpoint.dynamodb.gateway.principals import Principal

# The account is always written out; a wildcard may stand in the name only. A role's name is unique in its account,
# whatever its path, and the ARN of a session does not contain the path.
IDENTITY_PATTERN = r"^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/([\w+=,.@-]+/)*[\w+=,.@*-]+$"

_SESSION = re.compile(r"arn:(aws[a-z-]*):sts::([0-9]{12}):assumed-role/([\w+=,.@-]+)/[^/]+", re.ASCII)
_USER = re.compile(r"arn:(aws[a-z-]*):iam::([0-9]{12}):user/(?:[^/]+/)*([\w+=,.@-]+)", re.ASCII)


class IamIdentities:
    """Authenticates by the IAM role or user that signed the request.

    Args:
        patterns: For each principal the ARNs of its roles or users, `arn:aws:iam::123456789012:role/agents-*`.
    """

    def __init__(self, patterns: Mapping[Principal, Iterable[str]]) -> None:
        """Store the patterns without their paths."""
        self._known = [(_canonical(each), principal) for principal, own in patterns.items() for each in own]

    async def __call__(self, request: HTTPConnection) -> Principal | None:
        """Return the principal of the identity in a request's event, or None if there is none or it is unknown."""
        # A function URL and an HTTP API send events of version 2.0, a REST API of version 1.0.
        arn = found_in(request, "authorizer", "iam", "userArn") or found_in(request, "identity", "userArn")
        identity = _identity(arn) if isinstance(arn, str) else None
        if identity is None:
            return None
        return next((principal for known, principal in self._known if fnmatchcase(identity, known)), None)


def _canonical(pattern: str) -> str:
    """Return a pattern without the path."""
    account, _, rest = pattern.partition("/")
    return f"{account}/{rest.rpartition('/')[2]}"


def _identity(arn: str) -> str | None:
    """Return the ARN of a session's role, or of a user, without the path; None for any other identity."""
    for kind, form in (("role", _SESSION), ("user", _USER)):
        match = form.fullmatch(arn)
        if match is not None:
            partition, account, name = match.groups()
            return f"arn:{partition}:iam::{account}:{kind}/{name}"
    return None
