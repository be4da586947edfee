"""The doctor of a deployment: `python -m infra.smoke STACK`, or `make smoke STACK=...`.

Each check uses one part of the deployment as an agent or an administrator would. It prints what it checked, how long
that took, and what to do if it failed. Everything that a check creates has the name of this run, and is removed at the
end, so the table may be in use. What takes long comes last, and only with `--slow`.

Owns: the checks, their order, and what they leave behind. Must not know: how the saver stores anything.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.store.memory import InMemoryStore

from examples import demo_agent
from infra.checks import (
    PROBLEM,
    Check,
    Checks,
    LeftOutError,
    ProblemError,
    Result,
    client,
    described_stack,
    expect,
    outputs,
    report,
)
from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.cache.dynamodb.entries import entry_key
from langgraph.checkpoint.dynamodb import DynamoDBSaver, ThreadBusyError
from langgraph.checkpoint.dynamodb._format.items import partition_key
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb.cli.doctor import POLICIES, is_denied, try_actions
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from langgraph.store.dynamodb import DynamoDBStore
from langgraph.store.dynamodb.keys import partition_of, register_of

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

T = TypeVar("T")

# The roles whose policies the table's stack puts out.
ROLES = ("agent", "runner", "operator", "reader")
POLL_SECONDS = 1.0
# IAM's changes and the entries of an index take seconds to a minute, and alarms report within a minute.
PATIENCE_SECONDS = 90.0
# A cold start takes less; a gateway that is not there need not be asked for a minute.
GATEWAY_RETRY_SECONDS = 10.0
# A restore takes minutes, and so does the time until what was just written can be restored.
RESTORE_SECONDS = 3_600.0


@dataclass
class Smoke:
    """One run.

    Attributes:
        table_name: The table of the deployment.
        stack: The stack that made it; None if the table was made without one.
        gateway_url: The gateway's address; None for the one that the gateway's stack puts out.
        boundary: The ARN of the permissions boundary of the roles that are made, if there is one.
    """

    table_name: str
    stack: str | None = None
    gateway_url: str | None = None
    boundary: str | None = None
    name: str = field(default_factory=lambda: f"smoke-{uuid.uuid4().hex[:8]}")
    threads: list[str] = field(default_factory=list)
    cleanup: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @cached_property
    def dynamodb(self) -> Any:  # noqa: ANN401  # The stubs know each service by its own name only.
        """A client of DynamoDB."""
        return client("dynamodb")

    @property
    def is_aws(self) -> bool:
        """Whether AWS itself answers, and no emulator."""
        return ".amazonaws.com" in self.dynamodb.meta.endpoint_url

    def saver(self, table_name: str | None = None, **options: Any) -> DynamoDBSaver:
        """A saver that remembers nothing of what others wrote."""
        return DynamoDBSaver(table_name or self.table_name, **options)

    def thread(self) -> str:
        """The id of a new thread, which is deleted at the end."""
        self.threads.append(f"{self.name}/{uuid.uuid4().hex}")
        return self.threads[-1]

    def resource_name(self, suffix: str) -> str:
        """The name of a role or table of this run. It begins as the stack's, which the deployer's policy wants."""
        return f"{(self.stack or self.table_name)[:30]}-{self.name}-{suffix}"

    def until(self, done: Callable[[], T | None], what: str, seconds: float = PATIENCE_SECONDS) -> T:
        """Look again and again until there is something, for a bounded time."""
        deadline = time.monotonic() + seconds
        while (found := done()) is None:
            if time.monotonic() > deadline:
                raise ProblemError(f"{what} took longer than {seconds:.0f} s")
            time.sleep(POLL_SECONDS)
        return found

    def leave_out_unless(self, is_on: bool, what: str) -> None:
        """Leave a check out if this is an emulator whose CloudFormation did not switch something on."""
        if not is_on and self.stack and not self.is_aws:
            raise LeftOutError(f"the CloudFormation of this endpoint does not switch {what} on")

    def table_outputs(self) -> dict[str, str]:
        """The outputs of the table's stack."""
        if self.stack is None:
            raise LeftOutError("the table has no stack, so it has no policies and no alarms")
        return outputs(described_stack(self.stack))


CHECKS: Checks[Smoke] = Checks()


# The table, by itself


@CHECKS.add("run `langgraph-dynamodb doctor` with the table's name")
def doctor(smoke: Smoke) -> str:
    """Credentials, clock, keys, indexes and expiry are as the saver needs them."""
    program = str(Path(sys.executable).with_name("langgraph-dynamodb"))
    command = [program, "doctor", "--table", smoke.table_name, "--thread-id", smoke.thread(), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # Our own program.
    expect(done.stdout, done.stderr)
    found = json.loads(done.stdout)
    problems = [each for each in found if each["verdict"] == PROBLEM]
    if problems:
        says = "; ".join(f"{each['check']}: {each['says']}" for each in problems)
        raise ProblemError(says, "; ".join(each["remedy"] for each in problems))
    warnings = [f"{each['check']}: {each['says']}" for each in found if each["verdict"] == "warning"]
    return "; ".join([f"{len(found)} findings, none is a problem", *warnings])


@CHECKS.add("switch it on, as `langgraph-dynamodb doctor` says")
def expiry(smoke: Smoke) -> str:
    """DynamoDB removes what has expired."""
    found = smoke.dynamodb.describe_time_to_live(TableName=smoke.table_name)["TimeToLiveDescription"]
    status, attribute = found["TimeToLiveStatus"], found.get("AttributeName")
    smoke.leave_out_unless(status != "DISABLED", "time to live")
    says = f"time to live is {status} on {attribute}"
    expect(status in ("ENABLED", "ENABLING") and attribute == TTL_ATTRIBUTE, says)
    return says


@CHECKS.add('enable the key, and let DynamoDB use it: docs/runbook.md, "A key that cannot be used"')
def key(smoke: Smoke) -> str:
    """The key that encrypts the table can be used."""
    found = smoke.dynamodb.describe_table(TableName=smoke.table_name)["Table"].get("SSEDescription", {})
    arn = found.get("KMSMasterKeyArn")
    if arn is None:
        return "AWS owns the key, so nobody can disable it"
    state = client("kms").describe_key(KeyId=arn)["KeyMetadata"]["KeyState"]
    expect(state == "Enabled" and "InaccessibleEncryptionDateTime" not in found, f"{arn} is {state}")
    return f"{arn} is enabled, and DynamoDB can use it"


# What agents do


@CHECKS.add("`langgraph-dynamodb docs runbook` says what to do about most errors")
def saver(smoke: Smoke) -> str:
    """An agent asks a human, another process answers, and the thread is deleted."""
    return _conversation(smoke.saver, smoke.thread())


def _conversation(make: Callable[[], Any], thread_id: str) -> str:
    """Have a conversation, each part of it with a saver that remembers nothing of the others."""
    config = demo_agent.config_of(thread_id)

    async def waits() -> bool:
        async with make() as later:
            return bool((await later.aget_tuple(config)).pending_writes)

    with make() as first:
        _ask(first, thread_id)
    expect(asyncio.run(waits()), "the question was not stored")
    with make() as second:
        agent = demo_agent.build(second, InMemoryStore())
        demo_agent.answer(agent, config)
        count = len(list(second.list(config)))
        expect(not agent.get_state(config).next, "the agent did not end after the answer")
        second.delete_thread(thread_id)
        expect(second.get_tuple(config) is None, "the thread is there after its deletion")
    return f"stored, resumed, listed and deleted a thread of {count} checkpoints"


def _ask(saver: BaseCheckpointSaver[Any], thread_id: str) -> None:
    """Run the agent up to its question."""
    agent, config = demo_agent.build(saver, InMemoryStore()), demo_agent.config_of(thread_id)
    demo_agent.start(agent, config)
    expect(agent.get_state(config).interrupts, "the agent did not come to its question")


@CHECKS.add("look with `langgraph-dynamodb doctor` whether owner-index is active")
def directory(smoke: Smoke) -> str:
    """A thread that has an owner is in the owner's list."""
    thread_id = smoke.thread()
    with smoke.saver() as saver:
        saver.set_thread(thread_id, owner=smoke.name, title="smoke")

        def listed() -> bool | None:
            return [each.thread_id for each in saver.threads(owner=smoke.name).threads] == [thread_id] or None

        smoke.until(listed, "listing a thread")
    return "listed a thread by its owner"


@CHECKS.add("`langgraph-dynamodb docs runbook` says what to do about most errors")
def store(smoke: Smoke) -> str:
    """A memory is stored, found by a search, and deleted."""
    namespace = (smoke.name, "memories")
    smoke.cleanup.callback(_empty, smoke, partition_of(namespace), register_of(smoke.name))
    with DynamoDBStore(smoke.table_name) as memories:
        memories.put(namespace, "city", {"name": "Lisbon"})
        found = memories.search(namespace, filter={"name": "Lisbon"})
        expect([each.key for each in found] == ["city"], "a search did not find the memory")
        memories.delete(namespace, "city")
        expect(memories.get(namespace, "city") is None, "the memory is there after its deletion")
    return "stored, found and deleted a memory"


@CHECKS.add("read the cache's warning above this line: it logs errors, and agents run the node again")
def cache(smoke: Smoke) -> str:
    """What a node returned is cached, until the cache is cleared."""
    entry = (("node",), "key")
    smoke.cleanup.callback(_empty, smoke, partition_key(entry_key((smoke.name,), entry)))
    with DynamoDBCache[str](smoke.table_name, prefix=(smoke.name,), consistent_read=True) as nodes:
        nodes.set({entry: ("value", None)})
        expect(nodes.get([entry]) == {entry: "value"}, "the cached value was not found")
        nodes.clear([entry[0]])
        expect(nodes.get([entry]) == {}, "the value is there after the cache was cleared")
    return "cached a value, and cleared it"


def _empty(smoke: Smoke, *partitions: str) -> None:
    """Remove what store and cache keep for a while, or for good, about what was deleted."""
    for each in partitions:
        given = {"#pk": PARTITION_KEY, "#sk": SORT_KEY}
        for page in smoke.dynamodb.get_paginator("query").paginate(
            TableName=smoke.table_name,
            KeyConditionExpression="#pk = :pk",
            ProjectionExpression="#pk, #sk",
            ExpressionAttributeNames=given,
            ExpressionAttributeValues={":pk": {"S": each}},
        ):
            for item in page["Items"]:
                smoke.dynamodb.delete_item(TableName=smoke.table_name, Key=item)


@CHECKS.add("compare the clocks of the machines that run agents: a lock goes by them")
def lock(smoke: Smoke) -> str:
    """Of two runners of a thread, the second is kept out until the first is done."""
    thread_id = smoke.thread()
    with smoke.saver() as saver, smoke.saver() as other:
        with saver.thread_lock(thread_id):
            try:
                with other.thread_lock(thread_id):
                    raise ProblemError("two runners had the lock at the same time")
            except ThreadBusyError:
                pass
        with other.thread_lock(thread_id):
            return "kept a second runner out until the first was done"


# Who may do what


@CHECKS.add("deploy the stack again: somebody changed its policies, or the role has others")
def roles(smoke: Smoke) -> str:
    """Each role may do all that it is for, and nothing else."""
    arns, thread_id = smoke.table_outputs(), smoke.thread()
    for name in ROLES:
        role = made_role(smoke, name, arns[f"{name.capitalize()}PolicyArn"])
        _expect_rights(smoke, role, name, thread_id, POLICIES[name])
    every = set().union(*POLICIES.values())
    told = [f"the {each} {len(POLICIES[each])}, not {min(every - POLICIES[each])}" for each in ROLES]
    return f"of {len(every)} actions, allowed are to {'; to '.join(told)}"


@CHECKS.add("deploy the tenant's stack again: somebody changed its policy")
def tenants(smoke: Smoke) -> str:
    """A tenant's role reaches the tenant's threads and no others, whatever other policy it has."""
    agent = smoke.table_outputs()["AgentPolicyArn"]
    pages = client("cloudformation").get_paginator("describe_stacks").paginate()
    stacks = [each for page in pages for each in page["Stacks"]]
    checked: list[str] = []
    for stack in (each for each in stacks if each["StackName"].startswith(f"{smoke.stack}-tenant-")):
        given = {each["ParameterKey"]: each["ParameterValue"] for each in stack["Parameters"]}
        tenant = given["Tenant"]
        role = made_role(smoke, f"tenant-{len(checked)}", outputs(stack)["TenantPolicyArn"], agent)
        _expect_rights(smoke, role, "tenant", f"{tenant}/{smoke.name}", POLICIES["tenant"])
        _expect_rights(smoke, role, "tenant", f"not-{tenant}/{smoke.name}", ())
        checked.append(tenant)
    if not checked:
        raise LeftOutError(f"there is no stack {smoke.stack}-tenant-...: make deploy-tenant TENANT=name")
    return f"with the agent's policy beside it, refused to {', '.join(checked)} the threads of others"


def made_role(smoke: Smoke, name: str, *policies: str) -> str:
    """Create a role that whoever runs this may assume; return its ARN."""
    iam, role_name = client("iam"), smoke.resource_name(name)
    trust = {"AWS": client("sts").get_caller_identity()["Account"]}
    statement = {"Effect": "Allow", "Principal": trust, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    bounded = {} if smoke.boundary is None else {"PermissionsBoundary": smoke.boundary}
    try:
        made = iam.create_role(RoleName=role_name, AssumeRolePolicyDocument=document, **bounded)
        arn = made["Role"]["Arn"]
    except ClientError as error:
        if is_denied(error):
            remedy = "run this with the DeployerPolicyArn of infra/access.yaml, and with BOUNDARY=..."
            raise ProblemError(str(error), remedy) from error
        raise
    smoke.cleanup.callback(iam.delete_role, RoleName=role_name)
    for policy in policies:
        iam.attach_role_policy(RoleName=role_name, PolicyArn=policy)
        smoke.cleanup.callback(iam.detach_role_policy, RoleName=role_name, PolicyArn=policy)
    return str(arn)


def assumed(role_arn: str) -> boto3.Session | None:
    """A session of a role; None as long as IAM does not know the role everywhere."""
    try:
        given = client("sts").assume_role(RoleArn=role_arn, RoleSessionName="smoke")["Credentials"]
    except ClientError as error:
        if is_denied(error):
            return None
        raise
    return boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])


def _expect_rights(smoke: Smoke, role_arn: str, name: str, thread_id: str, wanted: Collection[str]) -> None:
    """Make sure that a role may do this and nothing else, once IAM knows its policy everywhere."""
    session = smoke.until(lambda: assumed(role_arn), f"assuming the role of the {name}")
    dynamodb, deadline = session.client("dynamodb"), time.monotonic() + PATIENCE_SECONDS
    while True:
        tried = try_actions(dynamodb, smoke.table_name, thread_id)
        found = {action for action, outcome in tried.items() if not is_denied(outcome)}
        too_much, missing = sorted(found - set(wanted)), sorted(set(wanted) - found)
        # The rights of a new role only grow, so what it must not do need not be waited for.
        if too_much or not missing or not smoke.is_aws or time.monotonic() > deadline:
            break
        time.sleep(POLL_SECONDS)
    if not smoke.is_aws and found == set(tried):
        raise LeftOutError("this endpoint takes policies and applies none")
    if not smoke.is_aws and missing and not found:
        raise LeftOutError("this endpoint denies the role everything: it knows no dynamodb:LeadingKeys")
    whose = f"the {name}, in the thread {thread_id},"
    expect(not too_much, f"{whose} may do what it must not: {', '.join(too_much)}")
    expect(not missing, f"{whose} may not do what it is for: {', '.join(missing)}")


# What stands around the table


@CHECKS.add("set GATEWAY_TOKEN to a token of the principals, and GATEWAY_PREFIX to the tenant's prefix")
def gateway(smoke: Smoke) -> str:
    """An agent without access to the table asks and is answered through the gateway."""
    url = smoke.gateway_url
    if url is None and smoke.stack is not None:
        url = outputs(described_stack(f"{smoke.stack}-gateway")).get("Url")
    if url is None:
        raise LeftOutError(
            "there is no stack of a gateway on Lambda; name the address of another: --gateway URL"
        )
    address = url
    prefix = os.environ.get("GATEWAY_PREFIX", "")
    token = os.environ.get("GATEWAY_TOKEN") or None

    def make() -> HttpCheckpointSaver:
        return HttpCheckpointSaver(
            address, auth=token, thread_prefix=prefix, retry_seconds=GATEWAY_RETRY_SECONDS
        )

    smoke.threads.append(f"{prefix}{smoke.name}/gateway")
    return f"{_conversation(make, f'{smoke.name}/gateway')}, at {address}"


@CHECKS.add(
    "let CloudWatch publish to the topic: its policy, and its key's, have to allow cloudwatch.amazonaws.com"
)
def alarm(smoke: Smoke) -> str:
    """An alarm that goes off reaches its topic."""
    smoke.table_outputs()
    cloudwatch, stack = client("cloudwatch"), f"{smoke.stack}-observability"
    expect(described_stack(stack) is not None, f"there is no stack {stack}", "make deploy")
    pages = cloudwatch.get_paginator("describe_alarms").paginate(AlarmNamePrefix=stack)
    alarms = [each for page in pages for each in page["MetricAlarms"]]
    if not smoke.is_aws and not alarms:
        raise LeftOutError(f"the CloudFormation of this endpoint makes no alarm of {stack}")
    quiet = [each for each in alarms if each["StateValue"] != "ALARM"]
    # Some emulators do not tell the actions.
    told = next((each for each in quiet if each.get("AlarmActions", "unknown")), None)
    if told is None:
        remedy = 'make deploy OBSERVABILITY_PARAMETERS="AlarmTopicArn=arn:aws:sns:..."'
        raise ProblemError("no alarm that is quiet now would tell anybody", remedy)
    name, began = told["AlarmName"], datetime.now(timezone.utc)

    def put(state: str) -> None:
        cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="tried by make smoke")

    def reported() -> str | None:
        history = cloudwatch.describe_alarm_history(AlarmName=name, HistoryItemType="Action", StartDate=began)
        return next((each["HistorySummary"] for each in history["AlarmHistoryItems"]), None)

    smoke.cleanup.callback(put, told["StateValue"])
    put("ALARM")
    if not smoke.is_aws and reported() is None:
        raise LeftOutError(f"set off {name}, but this endpoint keeps no history of what that led to")
    summary = smoke.until(reported, f"the report of {name}")
    expect(summary.startswith("Successfully"), summary)
    return f"{name}: {summary}; now look whether it arrived"


# What takes long


@CHECKS.add("report it, with this line and the version of langgraph", is_slow=True)
def conformance(smoke: Smoke) -> str:
    """LangGraph's own suite passes on the async methods, in a table of its own."""
    name = smoke.resource_name("suite")

    @checkpointer_test(name="DynamoDBSaver")
    async def saver_under_test() -> AsyncIterator[BaseCheckpointSaver[Any]]:
        async with smoke.saver(name) as saver:
            yield saver

    with smoke.saver(name) as saver:
        saver.setup()
    smoke.cleanup.callback(smoke.dynamodb.delete_table, TableName=name)
    report = asyncio.run(validate(saver_under_test))
    failures = [failure for result in report.results.values() for failure in result.failures]
    expect(not failures, "; ".join(map(str, failures)))
    expect(report.conformance_level() == "FULL", f"the level is {report.conformance_level()}")
    return f"{sum(each.tests_passed for each in report.results.values())} tests passed, none was skipped"


def _newest(smoke: Smoke, table_name: str, thread_id: str) -> CheckpointTuple | None:
    with smoke.saver(table_name) as saver:
        return saver.get_tuple(demo_agent.config_of(thread_id))


@CHECKS.add(
    "deploy the table with PointInTimeRecoveryDays; docs/move-table.md has the steps of a restore",
    is_slow=True,
)
def restored(smoke: Smoke) -> str:
    """A thread is in a copy of the table as it was at a point in time."""
    dynamodb, thread_id, copy = smoke.dynamodb, smoke.thread(), smoke.resource_name("restored")
    with smoke.saver() as saver:
        _ask(saver, thread_id)
    wanted, written = _newest(smoke, smoke.table_name, thread_id), datetime.now(timezone.utc)

    def can_restore() -> bool | None:
        found = dynamodb.describe_continuous_backups(TableName=smoke.table_name)[
            "ContinuousBackupsDescription"
        ]
        recovery = found.get("PointInTimeRecoveryDescription", {})
        is_on = recovery.get("PointInTimeRecoveryStatus") == "ENABLED"
        smoke.leave_out_unless(is_on, "point-in-time recovery")
        expect(is_on, "point-in-time recovery is off")
        # An emulator restores the present, and what it says of times stands still.
        return not smoke.is_aws or recovery["LatestRestorableDateTime"] > written or None

    def is_active() -> bool | None:
        return dynamodb.describe_table(TableName=copy)["Table"]["TableStatus"] == "ACTIVE" or None

    try:
        smoke.until(can_restore, "point-in-time recovery", RESTORE_SECONDS)
    except ClientError as error:
        if not smoke.is_aws and error.response["Error"]["Code"] == "UnknownOperationException":
            raise LeftOutError("this endpoint restores no tables") from error
        raise
    began = time.monotonic()
    dynamodb.restore_table_to_point_in_time(
        SourceTableName=smoke.table_name, TargetTableName=copy, UseLatestRestorableTime=True
    )
    smoke.cleanup.callback(dynamodb.delete_table, TableName=copy)
    smoke.until(is_active, "restoring the table", RESTORE_SECONDS)
    expect(_newest(smoke, copy, thread_id) == wanted, "a thread of the restored table is not what it was")
    return f"the thread is in the copy, which took {time.monotonic() - began:.0f} s"


# The run


def _delete_threads(smoke: Smoke) -> None:
    with smoke.saver() as saver:
        for thread_id in smoke.threads:
            saver.delete_thread(thread_id)


def _cleaned_up(smoke: Smoke) -> str:
    # One of the callbacks, so that it keeps no other from running if it fails.
    smoke.cleanup.callback(_delete_threads, smoke)
    smoke.cleanup.close()
    return f"removed {len(smoke.threads)} threads, and all else with the name {smoke.name}"


def run(smoke: Smoke, checks: Collection[Check[Smoke]]) -> Iterator[Result]:
    """Make each check, whatever became of those before, and clean up."""
    try:
        for each in checks:
            yield each.made(smoke)
    finally:
        yield Check(_cleaned_up, f"remove what has the name {smoke.name}").made(smoke)


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.smoke",
        description=__doc__.split("\n", 1)[0],
        epilog=CHECKS.described(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", nargs="?", help="the stack of table.yaml")
    parser.add_argument("--table", help="a table that was made without a stack")
    parser.add_argument("--gateway", metavar="URL", help="a gateway's address, if no stack puts it out")
    parser.add_argument(
        "--boundary", metavar="ARN", help="the permissions boundary of the roles that are made"
    )
    parser.add_argument(
        "--only", action="append", choices=CHECKS, metavar="NAME", help="one check; repeatable"
    )
    parser.add_argument("--slow", action="store_true", help="the slow checks too: suite and restore")
    options = parser.parse_args()
    if (options.stack is None) == (options.table is None):
        parser.error("name a stack, or a table by --table")
    smoke = Smoke(options.table or "", options.stack, options.gateway, options.boundary)
    if options.stack:
        try:
            found = smoke.table_outputs()
        except (BotoCoreError, ClientError) as error:
            sys.exit(f"The stack {options.stack} cannot be read: {error}")
        if "TableName" not in found:
            sys.exit(
                f"There is no stack {options.stack} with a table here: make deploy STACK={options.stack}"
            )
        smoke.table_name = found["TableName"]
    wanted = options.only or [name for name, each in CHECKS.items() if options.slow or not each.is_slow]
    sys.stdout.write(f"{smoke.name}: the table {smoke.table_name} at {smoke.dynamodb.meta.endpoint_url}\n")
    sys.stdout.flush()
    return report(run(smoke, [CHECKS[name] for name in wanted]))


if __name__ == "__main__":
    sys.exit(main())
