"""Try a deployment once, before agents do: `python -m infra.smoke STACK`, or `make smoke STACK=...`.

It runs LangGraph's conformance suite, an agent that is killed and resumed, a tenant that is refused, a restore into
another table and throttled requests, with the credentials of whoever calls it; says what each of them came to, which it
left out and why, and what all of it cost; and deletes what it made. The table has to be empty when it begins, and
nobody may use it meanwhile: everything in it is deleted at the end.

Owns: the order of the checks, and what they leave behind. Must not know: how the saver stores anything.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import aioboto3
import boto3
from botocore.exceptions import BotoCoreError, ClientError
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.store.memory import InMemoryStore

from benchmarks.meter import Meter, total
from examples import demo_agent
from infra.tested import record
from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, CheckpointerError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.pricing import request_dollars
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

OK, PROBLEM, LEFT_OUT = "ok", "problem", "left out"
# The tenant whose policy is tried, so the prefix of all threads here.
TENANT = "smoke"
# IAM's changes, and the latest time that can be restored, follow after minutes.
PATIENCE_SECONDS = 3_600.0
POLL_SECONDS = 2.0
# So little that agents side by side have more to write, and so much that each of them gets through.
COPY_WRITE_UNITS_MAX = 5
AGENTS_AT_ONCE = 8
TENANT_TEMPLATE = Path(__file__).with_name("tenant.yaml")


class ProblemError(Exception):
    """The deployment is not as it has to be."""


class LeftOutError(Exception):
    """A check that cannot be made here; the message says why."""


@dataclass(frozen=True)
class Result:
    """What a check came to."""

    check: str
    verdict: str
    says: str


@dataclass
class Smoke:
    """One run.

    Attributes:
        table_name: The table that was deployed.
        stack: The stack that made it; None where the table was made without one.
        usage: A file in which other processes note what their requests cost.
        endpoint_url: Another endpoint than AWS's, for every service.
        waits: Called between two looks at something that takes its time.
    """

    table_name: str
    stack: str | None
    usage: Path
    endpoint_url: str | None = None
    waits: Callable[[float], None] = time.sleep
    meter: Meter = field(default_factory=Meter)
    copies: list[str] = field(default_factory=list)
    cleanup: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @cached_property
    def session(self) -> boto3.Session:
        """A session whose requests to DynamoDB are metered."""
        return self.meter.watch(boto3.Session())

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        """A client of DynamoDB."""
        return self.session.client("dynamodb", endpoint_url=self.endpoint_url)

    @property
    def cloudformation(self) -> CloudFormationClient:
        """A client of CloudFormation."""
        return self.session.client("cloudformation", endpoint_url=self.endpoint_url)

    def saver(self, table_name: str | None = None, **options: Any) -> DynamoDBSaver:
        """A saver that remembers nothing of what others wrote."""
        sessions = {"session": self.session, "async_session": self.meter.watch(aioboto3.Session())}
        return DynamoDBSaver(
            table_name or self.table_name, endpoint_url=self.endpoint_url, **(sessions | options)
        )

    def thread(self) -> str:
        """The id of a new thread."""
        return f"{TENANT}/{uuid.uuid4().hex}"

    def until(self, done: Callable[[], T | None], what: str) -> T:
        """Look again and again until there is something, for a bounded time."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := done()) is None:
            if time.monotonic() > deadline:
                raise ProblemError(f"{what} took longer than {PATIENCE_SECONDS:.0f} s")
            self.waits(POLL_SECONDS)
        return found


def expect(condition: bool, otherwise: str) -> None:
    """Stop a check."""
    if not condition:
        raise ProblemError(otherwise)


# The checks, in the order in which they are made


def conformance(smoke: Smoke) -> str:
    """LangGraph's own suite, on the async methods."""

    @checkpointer_test(name="DynamoDBSaver")
    async def saver_under_test() -> AsyncIterator[BaseCheckpointSaver[Any]]:
        async with smoke.saver() as saver:
            yield saver

    report = asyncio.run(validate(saver_under_test))
    failures = [failure for result in report.results.values() for failure in result.failures]
    expect(not failures, "; ".join(map(str, failures)))
    expect(report.conformance_level() == "FULL", f"the level is {report.conformance_level()}")
    return f"{sum(each.tests_passed for each in report.results.values())} tests passed, none was skipped"


def killed_and_resumed(smoke: Smoke) -> str:
    """A process is killed while one of three tools is at work; another one goes on."""
    thread_id, slow = smoke.thread(), demo_agent.SEARCHES[-1]
    with _agent(smoke, "start", thread_id, **{demo_agent.HANG_VARIABLE: slow}) as process:
        smoke.until(lambda: _finished(smoke, thread_id, process), "storing what two tools had found")
        process.kill()
    with _agent(smoke, "resume", thread_id) as process:
        said, _ = process.communicate()
    begun = [line.split()[1] for line in said.splitlines() if line.startswith("tool ")]
    expect(process.returncode == 0, f"the process that resumed ended with {process.returncode}")
    expect(begun == [slow], f"the process that resumed ran {begun}, not {slow} alone")
    return f"after kill -9 a second process ran {slow} and nothing else"


@contextlib.contextmanager
def _agent(smoke: Smoke, action: str, thread_id: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    reach = {"AWS_ENDPOINT_URL_DYNAMODB": smoke.endpoint_url} if smoke.endpoint_url else {}
    shared = {demo_agent.TABLE_VARIABLE: smoke.table_name, demo_agent.USAGE_VARIABLE: str(smoke.usage)}
    process = subprocess.Popen(  # noqa: S603  # The program is this Python and the arguments are ours.
        [sys.executable, "-m", "examples.demo_agent", action, thread_id],
        env={**os.environ, **reach, **shared, **variables},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _finished(smoke: Smoke, thread_id: str, process: subprocess.Popen[str]) -> bool | None:
    """Whether two of three tools are done; None as long as they are not."""
    expect(process.poll() is None, f"the agent's process ended with {process.poll()}")
    found = _newest(smoke, smoke.table_name, thread_id)
    writes = (found.pending_writes or []) if found else []
    tools = sum(channel == "messages" for _, channel, _ in writes)
    return True if tools == len(demo_agent.SEARCHES) - 1 else None


def _newest(smoke: Smoke, table_name: str, thread_id: str) -> CheckpointTuple | None:
    with smoke.saver(table_name) as saver:
        return saver.get_tuple(demo_agent.config_of(thread_id))


def expiry(smoke: Smoke) -> str:
    """What expires is removed by DynamoDB."""
    found = smoke.dynamodb.describe_time_to_live(TableName=smoke.table_name)["TimeToLiveDescription"]
    is_on = (found["TimeToLiveStatus"], found.get("AttributeName")) == ("ENABLED", TTL_ATTRIBUTE)
    if not is_on and smoke.stack and smoke.endpoint_url:
        raise LeftOutError("the CloudFormation of this endpoint does not switch time to live on")
    expect(is_on, f"time to live is {found['TimeToLiveStatus']} on {found.get('AttributeName')}")
    return f"time to live is on {TTL_ATTRIBUTE}"


def denied_tenant(smoke: Smoke) -> str:
    """A role with a tenant's policy, and the agent's beside it, reaches the tenant's threads and no others."""
    if smoke.stack is None:
        raise LeftOutError("there is no stack whose tenants' policy could be tried")
    name, arn = _role(smoke)
    own, other = f"{TENANT}/{uuid.uuid4().hex}", f"not-{TENANT}/{uuid.uuid4().hex}"
    # Without any policy the role may do nothing, wherever policies are applied.
    are_applied = not smoke.until(lambda: _may_read(smoke, arn, own), "assuming the new role")
    iam = smoke.session.client("iam", endpoint_url=smoke.endpoint_url)
    for policy in (_tenant_policy(smoke, smoke.stack), _outputs(smoke, smoke.stack)["AgentPolicyArn"]):
        iam.attach_role_policy(RoleName=name, PolicyArn=policy)
        smoke.cleanup.callback(iam.detach_role_policy, RoleName=name, PolicyArn=policy)
        smoke.until(lambda: _may_read(smoke, arn, own) or None, "letting the tenant read its own thread")
        refused = not _may_read(smoke, arn, other)
        expect(refused or not are_applied, "a tenant could read another tenant's thread")
    if not are_applied:
        raise LeftOutError("this endpoint takes policies and applies none")
    return "refused another tenant's thread, with the agent's policy beside its own, too"


def _role(smoke: Smoke) -> tuple[str, str]:
    """A new role that whoever runs this may assume, by name and ARN."""
    iam = smoke.session.client("iam", endpoint_url=smoke.endpoint_url)
    sts = smoke.session.client("sts", endpoint_url=smoke.endpoint_url)
    trusted = {"AWS": sts.get_caller_identity()["Account"]}
    statement = {"Effect": "Allow", "Principal": trusted, "Action": "sts:AssumeRole"}
    name = f"smoke-{uuid.uuid4().hex}"
    try:
        role = iam.create_role(
            RoleName=name,
            AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
        )["Role"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "AccessDenied":
            raise LeftOutError("whoever runs this may not make roles") from error
        raise
    smoke.cleanup.callback(iam.delete_role, RoleName=name)
    return name, role["Arn"]


def _tenant_policy(smoke: Smoke, stack: str) -> str:
    """The policy of `tenant.yaml` for this table, by a stack of its own."""
    cloudformation, name = smoke.cloudformation, f"{stack}-smoke-{uuid.uuid4().hex[:8]}"
    description = smoke.dynamodb.describe_table(TableName=smoke.table_name)["Table"]
    parameters = {
        "TableStackName": stack,
        "Tenant": TENANT,
        "KmsKeyArn": description.get("SSEDescription", {}).get("KMSMasterKeyArn", ""),
    }
    try:
        cloudformation.create_stack(
            StackName=name,
            TemplateBody=TENANT_TEMPLATE.read_text(),
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
            Capabilities=["CAPABILITY_IAM"],
        )
    except ClientError as error:
        if smoke.endpoint_url:
            raise LeftOutError(f"this endpoint does not take the tenants' template: {error}") from error
        raise
    smoke.cleanup.callback(cloudformation.delete_stack, StackName=name)
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name)
    return _outputs(smoke, name)["TenantPolicyArn"]


def _outputs(smoke: Smoke, stack: str) -> dict[str, str]:
    [found] = smoke.cloudformation.describe_stacks(StackName=stack)["Stacks"]
    return {each["OutputKey"]: each["OutputValue"] for each in found["Outputs"]}


def _may_read(smoke: Smoke, role_arn: str, thread_id: str) -> bool | None:
    """Whether a role may read a thread; None where it cannot be assumed yet."""
    sts = smoke.session.client("sts", endpoint_url=smoke.endpoint_url)
    try:
        given = sts.assume_role(RoleArn=role_arn, RoleSessionName="smoke")["Credentials"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "AccessDenied":
            return None
        raise
    assumed = boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
    with smoke.saver(session=smoke.meter.watch(assumed)) as saver:
        try:
            saver.get_tuple(demo_agent.config_of(thread_id))
        except CheckpointerConfigurationError as error:
            if (
                getattr(error.__cause__, "response", {}).get("Error", {}).get("Code")
                == "AccessDeniedException"
            ):
                return False
            raise
    return True


def restored(smoke: Smoke) -> str:
    """A thread is in a copy of the table as it was at a point in time."""

    def restore(copy: str, written: datetime) -> None:
        smoke.until(lambda: _can_restore(smoke, written), "point-in-time recovery")
        smoke.dynamodb.restore_table_to_point_in_time(
            SourceTableName=smoke.table_name, TargetTableName=copy, UseLatestRestorableTime=True, **_CHEAP
        )

    return _restored(smoke, restore)


def backup_restored(smoke: Smoke) -> str:
    """A thread is in a copy of the table that was made from a backup."""

    def restore(copy: str, written: datetime) -> None:
        del written
        backup = smoke.dynamodb.create_backup(TableName=smoke.table_name, BackupName=copy)
        arn = backup["BackupDetails"]["BackupArn"]
        smoke.cleanup.callback(smoke.dynamodb.delete_backup, BackupArn=arn)
        smoke.until(lambda: _backup_status(smoke, arn) == "AVAILABLE" or None, "the backup")
        smoke.dynamodb.restore_table_from_backup(TargetTableName=copy, BackupArn=arn, **_CHEAP)

    return _restored(smoke, restore)


# What a restored table is paid by.
_CHEAP: Any = {
    "BillingModeOverride": "PAY_PER_REQUEST",
    "OnDemandThroughputOverride": {"MaxWriteRequestUnits": COPY_WRITE_UNITS_MAX},
}


def _backup_status(smoke: Smoke, arn: str) -> str:
    description = smoke.dynamodb.describe_backup(BackupArn=arn)["BackupDescription"]
    return description["BackupDetails"]["BackupStatus"]


def _restored(smoke: Smoke, restore: Callable[[str, datetime], None]) -> str:
    dynamodb, thread_id = smoke.dynamodb, smoke.thread()
    _converse(smoke, smoke.table_name, thread_id)
    wanted, written = _newest(smoke, smoke.table_name, thread_id), datetime.now(timezone.utc)
    copy = f"{smoke.table_name[:200]}-smoke-{uuid.uuid4().hex[:8]}"
    began = time.monotonic()
    try:
        restore(copy, written)
    except ClientError as error:
        if smoke.endpoint_url and error.response["Error"]["Code"] == "UnknownOperationException":
            raise LeftOutError("this endpoint restores no tables") from error
        raise
    smoke.cleanup.callback(_delete_table, smoke, copy)
    smoke.until(lambda: _status(dynamodb, copy) == "ACTIVE" or None, "restoring the table")
    smoke.copies.append(copy)
    expect(_newest(smoke, copy, thread_id) == wanted, "a thread of the restored table is not what it was")
    found = dynamodb.describe_time_to_live(TableName=copy)["TimeToLiveDescription"]
    expect(
        found["TimeToLiveStatus"] == "DISABLED", "the restored table has time to live: correct the document"
    )
    return f"the thread was in the copy {time.monotonic() - began:.0f} s after it was stored"


def _can_restore(smoke: Smoke, written: datetime) -> bool | None:
    found = smoke.dynamodb.describe_continuous_backups(TableName=smoke.table_name)
    recovery = found["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
        raise LeftOutError("point-in-time recovery is off")
    # On AWS the latest time that can be restored is some minutes ago; moto's stands still, and it restores the present.
    return True if smoke.endpoint_url or recovery["LatestRestorableDateTime"] > written else None


def _status(dynamodb: DynamoDBClient, table_name: str) -> str:
    return dynamodb.describe_table(TableName=table_name)["Table"]["TableStatus"]


def _delete_table(smoke: Smoke, table_name: str) -> None:
    found = smoke.dynamodb.describe_table(TableName=table_name)["Table"]
    if found.get("DeletionProtectionEnabled"):
        smoke.dynamodb.update_table(TableName=table_name, DeletionProtectionEnabled=False)
        smoke.until(lambda: _status(smoke.dynamodb, table_name) == "ACTIVE" or None, "unprotecting the copy")
    smoke.dynamodb.delete_table(TableName=table_name)


def throttled(smoke: Smoke) -> str:
    """Agents get through although requests are throttled: by DynamoDB on the copy, or else by this client."""
    if smoke.copies:
        by_dynamodb = _throttles(smoke, smoke.copies[0], by_client=0)
        if by_dynamodb:
            return f"agents got through {by_dynamodb} requests that DynamoDB throttled"
    by_client = _throttles(smoke, smoke.table_name, by_client=3)
    expect(by_client > 0, "no request was throttled")
    return f"agents got through {by_client} requests that this client refused, since nothing here throttles"


def _throttles(smoke: Smoke, table_name: str, *, by_client: int) -> int:
    """Run agents side by side and count what was throttled; each of so many requests by the client itself."""
    seen, sent = itertools.count(), itertools.count(1)
    code = "ThrottlingException"

    def refuse(**_: object) -> tuple[Any, dict[str, Any]] | None:
        if not by_client or next(sent) % by_client:
            return None
        error = {"Error": {"Code": code, "Message": "refused by the smoke test"}}
        return SimpleNamespace(status_code=400), error

    def count(parsed: dict[str, Any], **_: object) -> None:
        if parsed.get("Error", {}).get("Code") in (code, "ProvisionedThroughputExceededException"):
            next(seen)

    def converse(thread_id: str) -> None:
        session = smoke.meter.watch(boto3.Session())
        # What a listener before the call returns stands for the answer, which the stubs do not know.
        events: Any = session.events
        events.register("before-call.dynamodb", refuse)
        events.register("after-call.dynamodb", count)
        _converse(smoke, table_name, thread_id, session=session)

    threads = [smoke.thread() for _ in range(AGENTS_AT_ONCE)]
    with ThreadPoolExecutor(AGENTS_AT_ONCE) as pool:
        list(pool.map(converse, threads))
    for thread_id in threads:
        found = _newest(smoke, table_name, thread_id)
        expect(found is not None, "a throttled agent lost its thread")
    return next(seen)


def _converse(smoke: Smoke, table_name: str, thread_id: str, **options: Any) -> None:
    """A turn of an agent, up to its question."""
    with smoke.saver(table_name, **options) as saver:
        agent = demo_agent.build(saver, InMemoryStore())
        demo_agent.start(agent, demo_agent.config_of(thread_id))
        asked = agent.get_state(demo_agent.config_of(thread_id)).interrupts
    expect(bool(asked), "the agent did not come to its question")


CHECKS = (conformance, killed_and_resumed, expiry, denied_tenant, restored, backup_restored, throttled)


def cleaned_up(smoke: Smoke) -> str:
    """Everything that was made is gone; every item is of this run, since the table was empty."""
    deleted = 0
    for page in smoke.dynamodb.get_paginator("scan").paginate(
        TableName=smoke.table_name, ProjectionExpression=f"{PARTITION_KEY}, {SORT_KEY}", ConsistentRead=True
    ):
        for item in page["Items"]:
            smoke.dynamodb.delete_item(TableName=smoke.table_name, Key=item)
            deleted += 1
    smoke.cleanup.close()
    expect(is_empty(smoke), "something is left in the table: somebody else uses it")
    return f"deleted all {deleted} items, and what else was made"


def run(smoke: Smoke) -> Iterator[Result]:
    """Make each check, whatever became of those before, and clean up."""
    try:
        for check in CHECKS:
            yield _made(smoke, check)
    finally:
        yield _made(smoke, cleaned_up)


def _made(smoke: Smoke, check: Callable[[Smoke], str]) -> Result:
    name = check.__name__.replace("_", " ")
    try:
        # What the agents print is for whoever watches the demo.
        with contextlib.redirect_stdout(io.StringIO()):
            return Result(name, OK, check(smoke))
    except LeftOutError as why:
        return Result(name, LEFT_OUT, str(why))
    except (ProblemError, CheckpointerError, ClientError, BotoCoreError) as error:
        return Result(name, PROBLEM, str(error))


def cost(smoke: Smoke) -> str:
    """What was charged for requests, by what the endpoint said of each."""
    spent = total([smoke.meter.total])
    for line in smoke.usage.read_text(encoding="utf-8").splitlines():
        noted = json.loads(line)
        spent.add(noted["call"], noted["units"])
    dollars = request_dollars(spent.write_units, spent.read_units)
    return (
        f"{spent.requests:,} requests, {spent.write_units:,.1f} write and {spent.read_units:,.1f} read units as the"
        f" endpoint counts them: ${dollars:.4f} on demand in us-east-1. A restore is charged by the table's size,"
        " which was next to nothing."
    )


def is_empty(smoke: Smoke) -> bool:
    """Whether nobody uses the table yet."""
    return not smoke.dynamodb.scan(TableName=smoke.table_name, Limit=1)["Items"]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m infra.smoke", description=__doc__.split("\n", 1)[0])
    parser.add_argument("stack", nargs="?", help="the stack of table.yaml")
    parser.add_argument("--table", help="a table that was made without a stack")
    parser.add_argument("--endpoint-url", help="an engine on this machine in place of AWS")
    parser.add_argument("--page", type=Path, help="the page whose section is replaced by what this says")
    parser.add_argument("--where", default="AWS", help="the section: AWS, or the engine's name and version")
    options = parser.parse_args()
    if (options.stack is None) == (options.table is None):
        parser.error("name a stack, or a table by --table")
    with tempfile.TemporaryDirectory() as scratch:
        usage = Path(scratch, "usage")
        usage.touch()
        smoke = Smoke(options.table or "", options.stack, usage, options.endpoint_url)
        try:
            if options.stack:
                smoke.table_name = _outputs(smoke, options.stack)["TableName"]
            if not is_empty(smoke):
                sys.exit(
                    f"The table {smoke.table_name} is in use. Deploy one for this, or run it before agents do."
                )
        except (BotoCoreError, ClientError) as error:
            sys.exit(str(error))
        results = _report(smoke)
    if options.page is not None:
        record(options.page, f"A table on {options.where}", results)
    return int(any(each.verdict == PROBLEM for each in results))


def _report(smoke: Smoke) -> list[Result]:
    """Run, print each result as it comes, and return them."""

    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    say(f"{smoke.table_name} at {smoke.dynamodb.meta.endpoint_url}; at the end everything in it is deleted")
    results = []
    for result in run(smoke):
        results.append(result)
        say(f"{result.verdict:9} {result.check}: {result.says}")
    say(cost(smoke))
    return results


if __name__ == "__main__":
    sys.exit(main())
