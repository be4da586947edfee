"""The broker: it assumes one role for every tenant, with the tenant's name as a session tag.

`infra/tenant-role.yaml` makes the role, and `infra/tenant.yaml` the policy that compares the tag with the threads.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

from .._runtime.fork import start_in_every_process, without_forks

# AWS allows no more for a role that a role assumes.
DURATION_SECONDS = 3600
_NOT_IN_NAMES = re.compile(r"[^\w+=,.@-]", re.ASCII)
_NAME_MAX = 64


class AssumeTenantRole:
    """Fetches a tenant's credentials by assuming a role with the session tag `tenant`.

    Args:
        role_arn: The role.
        client: A boto3 client of STS with the broker's own credentials. By default it creates one, in the region that
            boto3 finds.
        duration_seconds: For how long the credentials are valid.
    """

    def __init__(
        self, role_arn: str, *, client: Any = None, duration_seconds: int = DURATION_SECONDS
    ) -> None:
        """Take the role. Nothing is requested yet."""
        self._role_arn = role_arn
        self._given = client
        self._duration_seconds = duration_seconds
        start_in_every_process(self)

    def start(self) -> None:
        """Start without a client, unless one was given; also after a fork."""
        self._lock = threading.Lock()
        self._client = self._given

    def __call__(self, tenant: str) -> Mapping[str, Any]:
        """Assume the role for a tenant and return its credentials. CloudTrail has the tenant in the session's name."""
        answer = self._sts().assume_role(
            RoleArn=self._role_arn,
            # A session's name has 2 characters at least.
            RoleSessionName=f"t-{_NOT_IN_NAMES.sub('-', tenant)}"[:_NAME_MAX],
            Tags=[{"Key": "tenant", "Value": tenant}],
            DurationSeconds=self._duration_seconds,
        )
        # arn:aws:sts::<account>:assumed-role/...
        account_id = answer["AssumedRoleUser"]["Arn"].split(":")[4]
        return {**answer["Credentials"], "AccountId": account_id}

    def _sts(self) -> Any:
        with self._lock:
            if self._client is None:
                with without_forks():
                    import boto3  # noqa: PLC0415 - importing the package should cost little.

                    self._client = boto3.Session().client("sts")
            return self._client
