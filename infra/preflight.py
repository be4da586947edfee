"""Look before a first deployment: `python -m infra.preflight STACK`, or `make preflight STACK=...`.

It asks the account what a deployment would meet, and changes nothing.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from infra.checks import Checks, ProblemError, client, described_stack, expect, report
from infra.import_template import read_template

FOLDER = Path(__file__).parent
ACCESS = FOLDER / "access.yaml"
REMEDY = "attach the DeployerPolicyArn of infra/access.yaml to the role that deploys"
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
        given: The parameters that are to be passed to the templates, as Name=value.
        service_role: The role of CloudFormation; empty if whoever deploys makes everything.
        boundary: The permissions boundary of roles.
    """

    stack: str
    aws: str = "aws"
    given: Sequence[str] = ()
    service_role: str = ""
    boundary: str = ""

    def parameter(self, template: str, name: str) -> str:
        """The value of a parameter: the one that is to be passed, or the template's default."""
        default = read_template(FOLDER / template)["Parameters"][name]["Default"]
        return str(dict(each.split("=", 1) for each in self.given).get(name, default))

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


@CHECKS.add(REMEDY)
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
    return f"IAM's simulator allows all {count} actions that {ACCESS.name} has for whoever deploys"


def _questions(preflight: Preflight) -> Iterator[dict[str, Any]]:
    """A request to IAM's simulator for each statement of the policy, with the names that are to be deployed.

    Who passes no service role to CloudFormation needs its rights as well.
    """
    part, _, name = preflight.caller.rpartition(":")
    account = part.rpartition(":")[2]
    # The policies are those of the role, whose path is not in the name of its session.
    session = re.fullmatch(r"assumed-role/(.+)/[^/]+", name)
    role = client("iam").get_role(RoleName=session[1])["Role"] if session else {"Arn": preflight.caller}

    values = {
        "AWS::Partition": part.split(":")[1],
        "AWS::AccountId": account,
        "AWS::URLSuffix": "amazonaws.com",
        "Prefix": preflight.stack,
        "Boundary": preflight.boundary,
        "ServiceRole.Arn": preflight.service_role,
    }

    def filled(node: str | dict[str, str | list[str]]) -> str:
        """A value of the template, with names for what its wildcards stand for."""
        if isinstance(node, dict):
            [(function, argument)] = node.items()
            name = argument if isinstance(argument, str) else ".".join(argument)
            node = name if function == "Fn::Sub" else values[name]
        text = re.sub(r"\$\{([\w:]+)\}", lambda match: values[match[1]], node)
        return text if text == "*" else text.replace(":*:", f":{preflight.region}:").replace("*", "1")

    for statement in _statements(with_service=not preflight.service_role):
        tests = [test for tests in statement.get("Condition", {}).values() for test in tests.items()]
        context = {key: filled(value) for key, value in tests}
        actions = statement["Action"]
        yield {
            "PolicySourceArn": role["Arn"],
            "ActionNames": [actions] if isinstance(actions, str) else actions,
            "ResourceArns": [filled(statement["Resource"])],
            "ContextEntries": [
                {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
                for key, value in context.items()
                if value
            ],
        }


def _statements(*, with_service: bool) -> Iterator[dict[str, Any]]:
    """Yield what is allowed to whoever deploys, and to CloudFormation's role if there is none."""
    resources = read_template(ACCESS)["Resources"]
    for name in ("DeployerPolicy", *(["StacksPolicy"] if with_service else [])):
        for statement in resources[name]["Properties"]["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow" and not (
                with_service and statement["Sid"] == "PassTheServiceRole"
            ):
                yield statement


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
    table = preflight.parameter("table.yaml", "TableName")
    try:
        client("dynamodb").describe_table(TableName=table)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return f"there is no stack {preflight.stack} and no table {table}"
        raise
    raise ProblemError(f"there is a table {table} without the stack {preflight.stack}")


@CHECKS.add(REMEDY)
def concurrency(preflight: Preflight) -> str:
    """Lambda can reserve what the gateway's template reserves."""
    limits = client("lambda").get_account_settings()["AccountLimit"]
    wanted = int(preflight.parameter("gateway.yaml", "ReservedConcurrency"))
    free = limits["UnreservedConcurrentExecutions"] - UNRESERVED_MIN
    remedy = (
        'make deploy-gateway GATEWAY_PARAMETERS="ReservedConcurrency=0", or ask for more: aws service-quotas'
        " request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000"
    )
    expect(
        free >= wanted or not wanted,
        f"a gateway reserves {wanted} executions at a time, and {max(free, 0)} are left",
        remedy,
    )
    return f"{free} executions at a time can be reserved, and a gateway reserves {wanted}"


@CHECKS.add(REMEDY)
def endpoints(preflight: Preflight) -> str:
    """Which VPCs have an endpoint already, since a route table takes one for each service."""
    names = [f"com.amazonaws.{preflight.region}.dynamodb"]
    asked = client("ec2").get_paginator("describe_vpc_endpoints")
    pages = asked.paginate(Filters=[{"Name": "service-name", "Values": names}])
    found = [each["VpcId"] for page in pages for each in page["VpcEndpoints"]]
    if not found:
        return "no VPC has an endpoint for DynamoDB"
    return f"{', '.join(found)} has an endpoint for DynamoDB: for ECS, leave RouteTableIds empty there"


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.preflight",
        description=__doc__.split("\n", 1)[0],
        epilog=CHECKS.described(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="the stack of table.yaml that is to be deployed")
    parser.add_argument("given", nargs="*", metavar="NAME=VALUE", help="parameters of the templates")
    parser.add_argument("--aws", default="aws", help="the AWS CLI")
    parser.add_argument("--service-role", default="", metavar="ARN", help="the role of CloudFormation")
    parser.add_argument("--boundary", default="", metavar="ARN", help="the permissions boundary of roles")
    options = parser.parse_args()
    preflight = Preflight(options.stack, options.aws, options.given, options.service_role, options.boundary)
    return report(each.made(preflight) for each in CHECKS.values())


if __name__ == "__main__":
    sys.exit(main())
