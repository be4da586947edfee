"""Look before a first deployment: `python -m tools.preflight STACK`, or `make preflight STACK=...`.

It asks the account what a deployment would meet, and changes nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from infra.import_template import read_template
from tools.checks import Checks, ProblemError, client, described_stack, expect, report

FOLDER = Path(__file__).parents[1] / "infra"
POLICY = FOLDER / "deployer.json"
# The prefix of all names in the deployer's policy.
PREFIX = "langgraph-checkpoints"
# The states in which CloudFormation updates a stack.
UPDATABLE = ("CREATE_COMPLETE", "IMPORT_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")
# What AWS keeps for functions without a reservation.
UNRESERVED_MIN = 100


@dataclass
class Preflight:
    """What is to be deployed.

    Attributes:
        stack: The name of the table's stack.
        aws: The AWS CLI.
    """

    stack: str
    aws: str = "aws"

    @cached_property
    def caller(self) -> str:
        """The ARN of whoever deploys."""
        return str(client("sts").get_caller_identity()["Arn"])

    @property
    def region(self) -> str:
        """The region that the configuration names."""
        return str(client("sts").meta.region_name)


CHECKS: Checks[Preflight] = Checks()


@CHECKS.add("install what is missing; CONTRIBUTING.md says what each is for")
def versions(preflight: Preflight) -> str:
    """The programs that the commands need are installed."""
    found = [f"Python {sys.version.split()[0]}"]
    for program in (preflight.aws, "make", "docker"):
        if shutil.which(program) is None:
            expect(program == "docker", f"{program} is not installed")
            found.append("no docker, which only images for ECS need")
        else:
            done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)  # noqa: S603  # It only prints.
            found.append(done.stdout.splitlines()[0])
    return ", ".join(found)


@CHECKS.add("run `aws configure`, or set AWS_PROFILE and AWS_REGION")
def account(preflight: Preflight) -> str:
    """There are credentials, of a role or user and not of the root."""
    expect(not preflight.caller.endswith(":root"), f"{preflight.caller} may do anything", "use a role")
    return f"{preflight.caller} in {preflight.region}"


@CHECKS.add("attach infra/deployer.json to the role that deploys")
def rights(preflight: Preflight) -> str:
    """Whoever deploys may do what the table, its alarms and the smoke test need."""
    iam, refused, count = client("iam"), [], 0
    for question in _questions(preflight):
        pages = iam.get_paginator("simulate_principal_policy").paginate(**question)
        for each in (each for page in pages for each in page["EvaluationResults"]):
            count += 1
            if each["EvalDecision"] != "allowed":
                refused.append(each["EvalActionName"])
    expect(not refused, f"not allowed: {', '.join(sorted(set(refused)))}")
    return f"IAM's simulator allows all {count} actions of {POLICY.name}"


def _questions(preflight: Preflight) -> Iterator[dict[str, Any]]:
    """A request to IAM's simulator for each statement of the policy, with the names that are to be deployed."""
    part, _, name = preflight.caller.rpartition(":")
    account = part.rpartition(":")[2]
    # The policies are those of the role, whose path is not in the name of its session.
    session = re.fullmatch(r"assumed-role/(.+)/[^/]+", name)
    role = client("iam").get_role(RoleName=session[1])["Role"] if session else {"Arn": preflight.caller}

    def filled(pattern: str) -> str:
        named = pattern.replace(":*:*:", f":{preflight.region}:{account}:").replace("::*:", f"::{account}:")
        return named.replace(f"{PREFIX}*", f"{preflight.stack}*").replace("*", "1") if named != "*" else "*"

    for statement in json.loads(POLICY.read_text(encoding="utf-8"))["Statement"]:
        context = {
            key: value for tests in statement.get("Condition", {}).values() for key, value in tests.items()
        }
        yield {
            "PolicySourceArn": role["Arn"],
            "ActionNames": statement["Action"],
            "ResourceArns": [filled(statement["Resource"])],
            "ContextEntries": [
                {"ContextKeyName": key, "ContextKeyValues": [filled(value)], "ContextKeyType": "string"}
                for key, value in context.items()
            ],
        }


@CHECKS.add("choose another name: make deploy STACK=name PARAMETERS=TableName=name")
def names(preflight: Preflight) -> str:
    """Stack and table are free, or are those that a deployment updates."""
    stack = described_stack(preflight.stack)
    if stack is not None:
        state = stack["StackStatus"]
        remedy = (
            f"wait if it is in progress; otherwise make destroy STACK={preflight.stack}, then deploy again"
        )
        expect(state in UPDATABLE, f"the stack {preflight.stack} is {state}", remedy)
        return f"the stack {preflight.stack} is {state}; make deploy updates it"
    table = read_template(FOLDER / "table.yaml")["Parameters"]["TableName"]["Default"]
    try:
        client("dynamodb").describe_table(TableName=table)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return f"there is no stack {preflight.stack} and no table {table}"
        raise
    raise ProblemError(f"there is a table {table} without the stack {preflight.stack}")


@CHECKS.add("attach infra/deployer.json to the role that deploys")
def concurrency(_: Preflight) -> str:
    """Lambda can reserve what the gateway's template reserves."""
    limits = client("lambda").get_account_settings()["AccountLimit"]
    wanted = int(read_template(FOLDER / "gateway.yaml")["Parameters"]["ReservedConcurrency"]["Default"])
    free = limits["UnreservedConcurrentExecutions"] - UNRESERVED_MIN
    remedy = (
        'make deploy-gateway GATEWAY_PARAMETERS="ReservedConcurrency=0", or ask for more: aws service-quotas'
        " request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000"
    )
    expect(
        free >= wanted,
        f"a gateway reserves {wanted} executions at a time, and {max(free, 0)} are left",
        remedy,
    )
    return f"{free} executions at a time can be reserved, and a gateway reserves {wanted}"


@CHECKS.add("attach infra/deployer.json to the role that deploys")
def endpoints(preflight: Preflight) -> str:
    """Which VPCs have an endpoint already, since a route table takes one for each service."""
    names = [f"com.amazonaws.{preflight.region}.{each}" for each in ("dynamodb", "s3")]
    asked = client("ec2").get_paginator("describe_vpc_endpoints")
    pages = asked.paginate(Filters=[{"Name": "service-name", "Values": names}])
    found = [each for page in pages for each in page["VpcEndpoints"]]
    told = [f"{each['VpcId']} has {each['ServiceName'].rpartition('.')[2]}" for each in found]
    if not told:
        return "no VPC has an endpoint for DynamoDB or S3"
    return f"{', '.join(told)}: for ECS, leave RouteTableIds or S3RouteTableIds empty there"


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.preflight",
        description=__doc__.split("\n", 1)[0],
        epilog=CHECKS.described(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="the stack of table.yaml that is to be deployed")
    parser.add_argument("--aws", default="aws", help="the AWS CLI")
    options = parser.parse_args()
    preflight = Preflight(options.stack, options.aws)
    return report(each.made(preflight) for each in CHECKS.values())


if __name__ == "__main__":
    sys.exit(main())
