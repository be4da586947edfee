"""The checks of `doctor`: the connection to the table, and the table's settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.dynamodb._format.items import key, partition_of
from langgraph.checkpoint.dynamodb._format.schema import (
    DAY_INDEX,
    OWNER_INDEX,
    RUN_INDEX,
    TEMPLATE_COMMAND,
    TTL_ATTRIBUTE,
    index_remedy,
    table_schema,
)
from langgraph.checkpoint.dynamodb._operations.setup import differences
from langgraph.checkpoint.dynamodb._runtime.failures import error_code, has_no_response, misfit
from langgraph.checkpoint.dynamodb.cli.findings import (
    Finding,
    asked,
    failed,
    is_denied,
    ok,
    problem,
    unknown,
    warning,
)
from langgraph.checkpoint.dynamodb.cli.values import counted
from langgraph.checkpoint.dynamodb.config.dynamodb import DynamoDBOptions

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_dynamodb import DynamoDBClient

# AWS refuses signatures of a clock that is minutes off. Expiry, and the order of a task's calls, suffer before that.
_SKEW_SECONDS_NOTED = 5
_SKEW_SECONDS_MAX = 240
_TEMPLATE = f"deploy the template that `{TEMPLATE_COMMAND}` prints"
# The checks of the indexes, with their names, and what needs them.
_INDEXES = {
    "index": (RUN_INDEX, "delete_for_runs and searches by run id need it"),
    OWNER_INDEX: (OWNER_INDEX, "lists of an owner's threads need it"),
    DAY_INDEX: (DAY_INDEX, "lists of all threads need it"),
}


@dataclass
class Examination:
    """One table, seen with one caller's credentials."""

    client: DynamoDBClient
    session: boto3.Session
    options: DynamoDBOptions
    thread_id: str
    clock: Callable[[], float] = time.time

    @property
    def name(self) -> str:
        """The table's name."""
        return self.options.table_name

    @property
    def _is_aws(self) -> bool:
        return ".amazonaws.com" in self.client.meta.endpoint_url

    def findings(self) -> Iterator[Finding]:
        """Yield one finding after the other."""
        yield libraries()
        yield self._credentials()
        yield self._region()
        yield self._identity()
        yield self._table()
        if not self.is_answered:
            return
        yield from self._settings()
        yield self._expiry()
        yield self._recovery()
        yield self._clock_skew()

    @property
    def is_answered(self) -> bool:
        """Whether the endpoint answers at all. If not, further requests would only take long."""
        found = self._description
        return not isinstance(found, Exception) or not has_no_response(found)

    @cached_property
    def _description(self) -> Any:
        """The table's description, or the error of the request for it."""
        response = asked(self.client.describe_table, TableName=self.name)
        return response if isinstance(response, Exception) else response["Table"]

    # The connection

    def _credentials(self) -> Finding:
        credentials = asked(self.session.get_credentials)
        if isinstance(credentials, Exception):
            return failed("credentials", self.name, credentials)
        if credentials is None:
            remedy = "give the function or task a role, run `aws configure`, or name a profile by --profile"
            return problem("credentials", "there are none", remedy)
        return ok("credentials", f"found by {credentials.method}")

    def _region(self) -> Finding:
        return ok("region", f"{self.client.meta.region_name}, at {self.client.meta.endpoint_url}")

    def _identity(self) -> Finding:
        if not self._is_aws:
            return unknown("identity", "an endpoint that is not AWS's does not ask who calls")
        caller = asked(
            lambda: self.session.client(
                "sts", region_name=self.client.meta.region_name, config=self.client.meta.config
            ).get_caller_identity()
        )
        if isinstance(caller, Exception):
            return failed("identity", self.name, caller)
        return ok("identity", caller["Arn"])

    # The table

    def _table(self) -> Finding:
        found = self._description
        if is_denied(found):
            remedy = "to check it too, run doctor with credentials that allow dynamodb:DescribeTable"
            return unknown(
                "table", "DescribeTable is not allowed; no policy of the template allows it", remedy
            )
        if isinstance(found, Exception):
            if error_code(found) == "ResourceNotFoundException":
                remedy = f"{_TEMPLATE}; or check --table and --region"
                return problem("table", str(found), remedy)
            return failed("table", self.name, found)
        if found["TableStatus"] not in ("ACTIVE", "UPDATING"):
            return problem("table", f"it is {found['TableStatus']}", "wait until it is ACTIVE")
        billing = found.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
        return ok("table", f"{self.name} is {found['TableStatus']}, {billing}")

    def _settings(self) -> Iterator[Finding]:
        """Yield the checks of the table's description."""
        table = self._description
        if isinstance(table, Exception):
            for check in ("keys", *_INDEXES, "encryption", "protection"):
                yield unknown(check, "the table cannot be described")
            return
        wrong = differences(table, table_schema(self.name))
        yield _keys(wrong)
        for check in _INDEXES:
            yield self._index(check, table, wrong)
        yield _encryption(table)
        yield self._protection(table)

    def _index(self, check: str, table: Mapping[str, Any], wrong: Mapping[str, str]) -> Finding:
        name, needed_by = _INDEXES[check]
        remedy = index_remedy(self.name, [name])
        found = next(
            (each for each in table.get("GlobalSecondaryIndexes", ()) if each["IndexName"] == name), None
        )
        if found is None:
            return problem(check, wrong[name], f"{needed_by}; {remedy}")
        if wrong[name]:
            return problem(check, wrong[name], f"{needed_by}; delete the index, then {remedy}")
        # Some emulators do not tell.
        status = found.get("IndexStatus", table["TableStatus"])
        if status not in ("ACTIVE", "UPDATING"):
            return problem(check, f"{name} is {status}", "wait until it is ACTIVE")
        projection = found["Projection"]["ProjectionType"]
        if name == RUN_INDEX and projection != "KEYS_ONLY":
            says = f"{RUN_INDEX} projects {projection}: each put writes the checkpoint twice"
            return warning(check, says, "make the index anew, with KEYS_ONLY")
        return ok(check, f"{name} is {status}")

    def _protection(self, table: Mapping[str, Any]) -> Finding:
        if table.get("DeletionProtectionEnabled"):
            return ok("protection", "the table cannot be deleted by mistake")
        if not self._is_aws:
            return unknown("protection", "a table for development needs none")
        remedy = f"aws dynamodb update-table --table-name {self.name} --deletion-protection-enabled"
        return warning("protection", "the table can be deleted by one request", remedy)

    def _expiry(self) -> Finding:
        response = asked(self.client.describe_time_to_live, TableName=self.name)
        if isinstance(response, Exception):
            return self._unasked("expiry", response)
        found = response["TimeToLiveDescription"]
        remedy = (
            f"aws dynamodb update-time-to-live --table-name {self.name} --time-to-live-specification"
            f" Enabled=true,AttributeName={TTL_ATTRIBUTE}"
        )
        if found["TimeToLiveStatus"] not in ("ENABLED", "ENABLING"):
            # Without a ttl nothing expires, so nothing is lost.
            judged = warning if self.options.ttl_seconds is None else problem
            return judged("expiry", "time to live is off: what expires is never removed", remedy)
        if found["AttributeName"] != TTL_ATTRIBUTE:
            says = f"time to live is on {found['AttributeName']}, not on {TTL_ATTRIBUTE}"
            return problem("expiry", says, f"switch it off, wait an hour, then {remedy}")
        return ok("expiry", f"time to live is on {TTL_ATTRIBUTE}")

    def _recovery(self) -> Finding:
        response = asked(self.client.describe_continuous_backups, TableName=self.name)
        if isinstance(response, Exception):
            return self._unasked("recovery", response)
        found = response["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        if found.get("PointInTimeRecoveryStatus") != "ENABLED":
            remedy = (
                f"aws dynamodb update-continuous-backups --table-name {self.name}"
                " --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true"
            )
            return warning("recovery", "point-in-time recovery is off", remedy)
        days = counted(found.get("RecoveryPeriodInDays", 35), "day")
        return ok("recovery", f"point-in-time recovery, {days}")

    def _unasked(self, check: str, error: Exception) -> Finding:
        """Return the finding for a failed request for one of the table's settings."""
        if error_code(error) == "UnknownOperationException":
            return unknown(check, "the endpoint has no such setting")
        if is_denied(error):
            remedy = "run doctor with the credentials of the table's administrator"
            return unknown(check, "the caller may not read it", remedy)
        return failed(check, self.name, error)

    def _clock_skew(self) -> Finding:
        item_key = key(partition_of(self.thread_id).pk, "doctor")
        response = asked(self.client.get_item, TableName=self.name, Key=item_key)
        if isinstance(response, Exception):
            # An error response has a date as well.
            response = getattr(response, "response", {})
        date = response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date is None:
            return unknown("clock", "no answer has a date")
        skew = self.clock() - parsedate_to_datetime(date).timestamp()
        says = f"this machine's is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} DynamoDB's"
        if abs(skew) <= _SKEW_SECONDS_NOTED:
            return ok("clock", says)
        judged = warning if abs(skew) <= _SKEW_SECONDS_MAX else problem
        return judged("clock", says, "set it by NTP: expiry and signatures go by it")


def _keys(wrong: Mapping[str, str]) -> Finding:
    says = "; ".join(filter(None, (wrong["key schema"], wrong["key types"])))
    if not says:
        return ok("keys", "PK and SK, strings")
    return problem(
        "keys", says, f"a table's keys cannot be changed; use a separate table for the saver: {_TEMPLATE}"
    )


def _encryption(table: Mapping[str, Any]) -> Finding:
    found = table.get("SSEDescription", {})
    if found.get("InaccessibleEncryptionDateTime"):
        says = f"the key {found.get('KMSMasterKeyArn')} cannot be used by DynamoDB"
        return problem("encryption", says, "enable the key, and check its key policy")
    return ok("encryption", f"at rest by {found.get('KMSMasterKeyArn', 'the key that AWS owns')}")


def libraries() -> Finding:
    """Check that async calls can work with the installed libraries."""
    told = misfit()
    if told is None:
        return ok("libraries", "aiobotocore fits botocore, or is not installed")
    says, _, remedy = told.partition("; ")
    return problem("libraries", says, remedy)
