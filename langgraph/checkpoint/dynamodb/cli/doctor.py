"""`doctor`: checks that everything is as the saver needs it, and says what to do about what is not."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .._format import items, schema
from .._operations.setup import differences
from .._runtime import failures
from .._runtime.requests import CONDITION_FAILED, Query
from ..config.dynamodb import DynamoDBOptions
from . import CommandError, Exit
from .context import CommandContext, in_options
from .output import counted

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_DENIED = ("AccessDenied", "AccessDeniedException")
INDEX_QUERY = "Query on the index"
OWNER_QUERY = f"Query on {schema.OWNER_INDEX}"
DAY_QUERY = f"Query on {schema.DAY_INDEX}"
_ON_TABLE = frozenset({"BatchGetItem", "GetItem", "Query"})
_READS = _ON_TABLE | {INDEX_QUERY, OWNER_QUERY}
_STORES = frozenset({"BatchWriteItem", "PutItem", "UpdateItem"})
_CHANGES = frozenset({"BatchWriteItem", "DeleteItem", "UpdateItem"})
# The policies of infra/table.yaml and infra/tenant.yaml. A test compares them.
POLICIES = {
    "agent": _READS | _CHANGES | _STORES,
    "runner": _ON_TABLE | _STORES,
    "operator": _READS | _CHANGES | {DAY_QUERY, "Scan"},
    "reader": _READS | {DAY_QUERY},
    "tenant": _ON_TABLE | {OWNER_QUERY} | _CHANGES | _STORES,
}
Verdict: TypeAlias = Literal["ok", "warning", "problem", "unknown"]
"""How serious a finding is. What could not be checked is unknown."""
Role: TypeAlias = Literal["agent", "runner", "operator", "reader", "tenant"]
"""The policies of the templates."""
# AWS refuses signatures of a clock that is minutes off. Expiry, and the order of a task's calls, suffer before that.
_SKEW_SECONDS_NOTED = 5
_SKEW_SECONDS_MAX = 240
_TEMPLATE = f"deploy the template that `{schema.TEMPLATE_COMMAND}` prints"
_SCHEMA_REMEDY = (
    f"the keys of a table cannot be changed: {_TEMPLATE}, as a separate table. If only an index is absent,"
    f" {schema.INDEX_REMEDY}. Delete one with other keys first"
)
_ACTIVE = ("ACTIVE", "UPDATING")


def try_actions(client: DynamoDBClient, table_name: str, thread_id: str) -> Mapping[str, Any]:
    """Try each action, and return its response or error.

    Nothing is written: a request that writes has a condition that cannot hold, or deletes an item that is not there.
    The requests take about six units together.
    """
    # Nobody has this key, so nobody's item is read or changed.
    item_key = items.key(items.partition_of(thread_id).pk, f"doctor {secrets.token_hex(8)}")
    never = {
        "ConditionExpression": "attribute_exists(#pk)",
        "ExpressionAttributeNames": {"#pk": schema.PARTITION_KEY},
    }
    query = Query(item_key[schema.PARTITION_KEY]["S"], prefix=item_key["SK"]["S"], consistent=False).params()
    of_run = Query("-", consistent=False, first_page=1, index=(schema.RUN_INDEX, schema.RUN_ID)).params()
    # An owner's name begins with the tenant as a thread id does.
    of_owner = Query(
        thread_id, consistent=False, first_page=1, index=(schema.OWNER_INDEX, schema.OWNER)
    ).params()
    of_day = Query("-", consistent=False, first_page=1, index=(schema.DAY_INDEX, schema.ACTIVE_DAY)).params()
    on_table = {"TableName": table_name}
    requests: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "GetItem": (client.get_item, {**on_table, "Key": item_key}),
        "BatchGetItem": (client.batch_get_item, {"RequestItems": {table_name: {"Keys": [item_key]}}}),
        "Query": (client.query, {**on_table, **query}),
        INDEX_QUERY: (client.query, {**on_table, **of_run}),
        OWNER_QUERY: (client.query, {**on_table, **of_owner}),
        DAY_QUERY: (client.query, {**on_table, **of_day}),
        "PutItem": (client.put_item, {**on_table, "Item": item_key, **never}),
        "UpdateItem": (client.update_item, {**on_table, "Key": item_key, **never}),
        "DeleteItem": (client.delete_item, {**on_table, "Key": item_key, **never}),
        "BatchWriteItem": (
            client.batch_write_item,
            {"RequestItems": {table_name: [{"DeleteRequest": {"Key": item_key}}]}},
        ),
        "Scan": (client.scan, {**on_table, "Limit": 1, "ProjectionExpression": schema.PARTITION_KEY}),
    }
    return {action: asked(request, **params) for action, (request, params) in requests.items()}


def is_unclear(outcome: Any) -> bool:
    """Tell whether a request failed for another reason than its condition."""
    return isinstance(outcome, Exception) and failures.error_code(outcome) != CONDITION_FAILED


def asked(request: Callable[..., Any], **params: Any) -> Any:
    """Make a request and return its response, or the error that it raised."""
    try:
        return request(**params)
    except Exception as error:  # noqa: BLE001 - the error is the result.
        return error


def is_denied(outcome: Any) -> bool:
    """Tell whether the caller has no right to a request."""
    return failures.error_code(outcome) in _DENIED


@dataclass(frozen=True)
class Finding:
    """The result of one check, with its remedy."""

    check: str
    verdict: Verdict
    says: str
    remedy: str = ""


def failed(check: str, table_name: str, error: Exception) -> Finding:
    """Return the finding for an error of a check."""
    if failures.is_transient(error):
        return Finding(check, "problem", str(error), in_options(failures.outage_remedy(table_name, error)))
    remedy = (
        failures.account_remedy(table_name, error)
        or f"`{schema.DOCS_COMMAND} runbook` says what to do about most errors"
    )
    return Finding(check, "problem", str(error), in_options(remedy))


def doctor(
    context: CommandContext, *, role: Role = "agent", thread_id: str = "langgraph-dynamodb-doctor"
) -> None:
    """Check the connection, the rights, the table and the clock.

    It prints a remedy for each problem. It changes nothing: to test rights to write, it
    sends requests whose condition cannot be true. If there is a problem, it ends with exit code 8. Decide yourself
    whether a warning matters.

    Options:
        role: The policy that the caller should have.
        thread_id ID: A thread to try rights in that no agent uses; begin it with a tenant's prefix.
    """
    findings = list(context.output.track("checking", _findings(context, role, thread_id)))
    _print(context, findings)
    problems = sum(each.verdict == "problem" for each in findings)
    if problems:
        raise CommandError(Exit.PROBLEMS, f"{counted(problems, 'problem')}; the remedies are above")


def _findings(context: CommandContext, role: Role, thread_id: str) -> Iterator[Finding]:
    name = context.options.table_name
    client = asked(lambda: context.client)
    if isinstance(client, Exception):
        yield failed("client", name, client)
        return
    examination = Examination(client, context.options, thread_id)
    yield from examination.findings()
    if examination.has_response:
        yield rights(try_actions(client, name, thread_id), role)


def _print(context: CommandContext, findings: list[Finding]) -> None:
    rows = [(each.verdict, each.check, each.says) for each in findings]
    context.output.table([asdict(each) for each in findings], ("", "check", "found"), rows)
    for each in findings:
        if each.remedy and not context.output.as_json:
            context.output.field(f"\n{each.check}", each.remedy)


@dataclass
class Examination:
    """One table, seen with one caller's credentials."""

    client: DynamoDBClient
    options: DynamoDBOptions
    thread_id: str
    clock: Callable[[], float] = time.time

    @property
    def name(self) -> str:
        """The table's name."""
        return self.options.table_name

    def findings(self) -> Iterator[Finding]:
        """Yield one finding after the other."""
        yield _libraries()
        yield self._table()
        if not self.has_response:
            return
        yield self._schema()
        yield self._expiry()
        yield self._recovery()
        yield self._clock_skew()

    @property
    def has_response(self) -> bool:
        """Whether the endpoint responds at all. If not, further requests would only take long."""
        found = self._description
        return not isinstance(found, Exception) or not failures.has_no_response(found)

    @cached_property
    def _description(self) -> Any:
        """The table's description, or the error of the request for it."""
        response = asked(self.client.describe_table, TableName=self.name)
        return response if isinstance(response, Exception) else response["Table"]

    def _table(self) -> Finding:
        found = self._description
        if is_denied(found):
            remedy = "to check it too, run doctor with credentials that allow dynamodb:DescribeTable"
            return Finding(
                "table",
                "unknown",
                "DescribeTable is not allowed; no policy of the template allows it",
                remedy,
            )
        if isinstance(found, Exception):
            if failures.error_code(found) == "ResourceNotFoundException":
                remedy = f"{_TEMPLATE}; or check --table and --region"
                return Finding("table", "problem", str(found), remedy)
            return failed("table", self.name, found)
        if found["TableStatus"] not in _ACTIVE:
            return Finding("table", "problem", f"it is {found['TableStatus']}", "wait until it is ACTIVE")
        meta = self.client.meta
        says = f"{self.name} is {found['TableStatus']}, in {meta.region_name}, at {meta.endpoint_url}"
        return Finding("table", "ok", says)

    def _schema(self) -> Finding:
        """Check the table's keys and indexes."""
        table = self._description
        if isinstance(table, Exception):
            return Finding("schema", "unknown", "the table cannot be described")
        wrong = [each for each in differences(table, schema.table_schema(self.name)).values() if each]
        if wrong:
            return Finding("schema", "problem", "; ".join(wrong), _SCHEMA_REMEDY)
        indexes = {each["IndexName"]: each for each in table["GlobalSecondaryIndexes"]}
        # Some emulators do not tell the status of an index.
        statuses = {name: each.get("IndexStatus", "ACTIVE") for name, each in indexes.items()}
        absent = [f"{name} is {status}" for name, status in statuses.items() if status not in _ACTIVE]
        if absent:
            return Finding("schema", "problem", "; ".join(absent), "wait until it is ACTIVE")
        projection = indexes[schema.RUN_INDEX]["Projection"]["ProjectionType"]
        if projection != "KEYS_ONLY":
            says = f"{schema.RUN_INDEX} projects {projection}: each put writes the checkpoint twice"
            return Finding("schema", "warning", says, "make the index anew, with KEYS_ONLY")
        return Finding("schema", "ok", "keys and indexes are those of the template")

    def _expiry(self) -> Finding:
        response = asked(self.client.describe_time_to_live, TableName=self.name)
        if is_denied(response):
            remedy = "run doctor with the credentials of the table's administrator"
            return Finding("expiry", "unknown", "the caller may not read it", remedy)
        if isinstance(response, Exception):
            return failed("expiry", self.name, response)
        found = response["TimeToLiveDescription"]
        remedy = (
            f"aws dynamodb update-time-to-live --table-name {self.name} --time-to-live-specification"
            f" Enabled=true,AttributeName={schema.TTL_ATTRIBUTE}"
        )
        if found["TimeToLiveStatus"] not in ("ENABLED", "ENABLING"):
            # Without a ttl nothing expires, so nothing is lost.
            verdict: Verdict = "warning" if self.options.ttl_seconds is None else "problem"
            return Finding("expiry", verdict, "time to live is off: what expires is never removed", remedy)
        if found["AttributeName"] != schema.TTL_ATTRIBUTE:
            says = f"time to live is on {found['AttributeName']}, not on {schema.TTL_ATTRIBUTE}"
            return Finding(
                "expiry", "problem", says, f"switch it off, wait an hour, then {schema.INDEX_REMEDY}"
            )
        return Finding("expiry", "ok", f"time to live is on {schema.TTL_ATTRIBUTE}")

    def _recovery(self) -> Finding:
        """Check what keeps the table, and what brings it back."""
        if isinstance(self._description, Exception):
            return Finding("recovery", "unknown", "the table cannot be described")
        response = asked(self.client.describe_continuous_backups, TableName=self.name)
        found = {} if isinstance(response, Exception) else response["ContinuousBackupsDescription"]
        state = found.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus", "unknown")
        is_protected = self._description.get("DeletionProtectionEnabled", False)
        says = f"deletion protection is {'on' if is_protected else 'off'}, point-in-time recovery {state.lower()}"
        if is_protected and state == "ENABLED":
            return Finding("recovery", "ok", says)
        remedy = (
            f"`make deploy`, or aws dynamodb update-table --table-name {self.name} --deletion-protection-enabled and"
            f" aws dynamodb update-continuous-backups --table-name {self.name} --point-in-time-recovery-specification"
            " PointInTimeRecoveryEnabled=true"
        )
        is_off = not is_protected or state == "DISABLED"
        return Finding("recovery", "warning" if is_off else "unknown", says, remedy)

    def _clock_skew(self) -> Finding:
        item_key = items.key(items.partition_of(self.thread_id).pk, "doctor")
        response = asked(self.client.get_item, TableName=self.name, Key=item_key)
        if isinstance(response, Exception):
            # An error response has a date as well.
            response = getattr(response, "response", {})
        date = response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date is None:
            return Finding("clock", "unknown", "no response has a date")
        skew = self.clock() - parsedate_to_datetime(date).timestamp()
        says = f"this machine's is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} DynamoDB's"
        if abs(skew) <= _SKEW_SECONDS_NOTED:
            return Finding("clock", "ok", says)
        verdict: Verdict = "warning" if abs(skew) <= _SKEW_SECONDS_MAX else "problem"
        return Finding("clock", verdict, says, "set it by NTP: expiry and signatures go by it")


def _libraries() -> Finding:
    """Check that async calls can work with the installed libraries."""
    told = failures.misfit()
    if told is None:
        return Finding("libraries", "ok", "aiobotocore fits botocore, or is not installed")
    says, _, remedy = told.partition("; ")
    return Finding("libraries", "problem", says, remedy)


def rights(outcomes: Mapping[str, Any], policy: str) -> Finding:
    """Tell whether the caller has all rights of a policy."""
    check, actions = f"rights: {policy}", POLICIES[policy]
    missing = sorted(each for each in actions if is_denied(outcomes[each]))
    if missing:
        return Finding(check, "problem", f"not allowed: {', '.join(missing)}", _remedy(policy))
    unclear = sorted(each for each in actions if is_unclear(outcomes[each]))
    if unclear:
        return Finding(check, "unknown", f"failed for other reasons: {', '.join(unclear)}")
    return Finding(check, "ok", "all of its actions are allowed")


def _remedy(policy: str) -> str:
    if policy == "tenant":
        return "attach TenantPolicyArn of infra/tenant.yaml to the role, and begin --thread-id with the tenant's prefix"
    return f"attach the policy in the output {policy.capitalize()}PolicyArn of the table's stack to the role"
