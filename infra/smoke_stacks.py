"""Make, update, break and destroy a stack of every template: `python -m infra.smoke_stacks`, or `make smoke-stacks`.

All stacks have a name of this run. The table's stack comes first, since others import from it, and goes last, with its
table. What a template needs and nobody gave, it is left out for; so is what an emulator cannot make, with its reason.

Owns: what each template is tried with. Must not know: what is in a template.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra.import_template import read_template
from infra.smoke import LEFT_OUT, OK, PROBLEM, LeftOutError, ProblemError, Result, expect
from infra.tested import record

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

Template: TypeAlias = dict[str, Any]

FOLDER = Path(__file__).parent
WHO = "principals: {agent: {iam: 'arn:aws:iam::123456789012:role/agent', rights: [read, write]}}"
POLL_SECONDS = 2.0
# CloudFormation itself gives up long before.
PATIENCE_SECONDS = 7_200.0
# Behind all that the template makes; no stack exports the value.
BROKEN = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": {"Fn::ImportValue": "nothing"}}}


@dataclass(frozen=True)
class Trial:
    """What one template is tried with.

    Attributes:
        file: The template.
        given: Its parameters.
        changed: What the update changes.
        needs: Parameters that only the account can give.
    """

    file: str
    given: Mapping[str, str]
    changed: Mapping[str, str]
    needs: tuple[str, ...] = ()


_CODE = ("CodeBucket", "CodeKey")
TRIALS: dict[str, Trial] = {
    "table": Trial(
        "table.yaml",
        {"DeletionProtection": "false"},
        {"ContributorInsights": "THROTTLED_KEYS", "PointInTimeRecoveryDays": "7"},
    ),
    "observability": Trial("observability.yaml", {}, {"LatencyMilliseconds": "20"}),
    "saver-metrics": Trial("saver-metrics.yaml", {"Service": "smoke"}, {"TenantWriteUnits": "5000"}),
    "tenant": Trial("tenant.yaml", {"Tenant": "acme"}, {"Tenant": "globex"}),
    "tenant-role": Trial("tenant-role.yaml", {}, {}, ("BrokerRoleArn",)),
    "gateway": Trial("gateway.yaml", {"Principals": WHO}, {"MemorySize": "512"}, _CODE),
    "gateway-http-api": Trial(
        "gateway.yaml",
        {
            "Principals": WHO,
            "Entrance": "HTTP_API",
            "JwtIssuer": "https://issuer.example",
            "JwtAudiences": "agents",
        },
        {"MemorySize": "512", "RequestsPerSecond": "5"},
        _CODE,
    ),
    "gateway-ecs": Trial(
        "gateway-ecs.yaml",
        {"DeletionProtection": "false"},
        {"LogRetentionDays": "60"},
        (
            "Image",
            "VpcId",
            "LoadBalancerSubnetIds",
            "TaskSubnetIds",
            "CertificateArn",
            "ClientCidr",
            "PrincipalsSecretArn",
        ),
    ),
    "lambda-agent": Trial(
        "examples/lambda-agent/template.yaml", {}, {"MemorySize": "512", "Driver": "sync"}, _CODE
    ),
    "ecs-agent": Trial(
        "examples/ecs-agent/template.yaml",
        {},
        {"LogRetentionDays": "60"},
        ("Image", "VpcId", "SubnetIds", "ClientCidr"),
    ),
}


def broken_template(template: Template) -> Template:
    """Return a template with a resource more, which fails once all others are made."""
    resources = template["Resources"]
    # What stands under a condition may not be there to wait for.
    behind = sorted(name for name, each in resources.items() if "Condition" not in each)
    return {**template, "Resources": {**resources, "Broken": {**BROKEN, "DependsOn": behind}}}


@dataclass
class Stacks:
    """The stacks of one run.

    Attributes:
        formation: A client of CloudFormation.
        dynamodb: A client of DynamoDB, which deletes the tables that their stacks keep.
        given: Parameters of the account.
        is_emulator: Whether a refusal is the emulator's, and not the template's.
        poll_seconds: How long to wait between two looks at a stack.
    """

    formation: CloudFormationClient
    dynamodb: Any
    given: Mapping[str, str]
    is_emulator: bool
    poll_seconds: float = POLL_SECONDS
    unique: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def name(self, what: str) -> str:
        """The name of a stack of this run."""
        return f"smoke-{self.unique}-{what}"

    @contextlib.contextmanager
    def bases(self) -> Iterator[None]:
        """Have the stacks that others import from, as long as the block runs."""
        with contextlib.ExitStack() as cleanup:
            for base, given in (("table", {"DeletionProtection": "false"}), ("tenant", {})):
                cleanup.callback(self.destroy, f"base-{base}")
                state = self.create(f"base-{base}", read_template(FOLDER / f"{base}.yaml"), given)
                expect(state == "CREATE_COMPLETE", f"the stack of {base}.yaml ended as {state}")
            yield

    def run(self) -> Iterator[Result]:
        """Try each template."""
        with self.bases():
            for name in TRIALS:
                yield self.tried(name)

    def tried(self, name: str) -> Result:
        """Try one template."""
        trial = TRIALS[name]
        missing = [each for each in trial.needs if each not in self.given]
        if missing:
            return Result(name, LEFT_OUT, f"nobody gave {', '.join(missing)}")
        try:
            return Result(name, OK, self._through(name, trial))
        except LeftOutError as why:
            return Result(name, LEFT_OUT, str(why))
        except (ProblemError, ClientError, BotoCoreError) as error:
            return Result(name, PROBLEM, str(error))

    def _through(self, name: str, trial: Trial) -> str:
        template = read_template(FOLDER / trial.file)
        given = {**self.given, **trial.given}
        try:
            state = self.create(name, template, given)
            self._expect_made(name, state)
            made = self.outputs(name)
            if trial.changed:
                state = self.update(name, template, {**given, **trial.changed})
                expect(state == "UPDATE_COMPLETE", f"the update ended as {state}: {self.reason(name)}")
                expect(self.outputs(name).keys() == made.keys(), "an update lost an output")
        finally:
            state = self.destroy(name)
        expect(state == "DELETE_COMPLETE", f"the stack could not be deleted: {state}")
        broken = f"broken-{name}"
        try:
            state = self.create(broken, broken_template(template), given)
            expect(
                state == "ROLLBACK_COMPLETE", f"a creation that failed ended as {state}, and left something"
            )
        finally:
            self.destroy(broken)
        updated = "updated, " if trial.changed else ""
        return f"made, {updated}destroyed; failed on purpose and taken back"

    def _expect_made(self, name: str, state: str) -> None:
        if state == "CREATE_COMPLETE":
            return
        why = self.reason(name)
        if self.is_emulator:
            raise LeftOutError(f"the emulator does not make it: {why}")
        raise ProblemError(f"the creation ended as {state}: {why}")

    # CloudFormation

    def create(self, what: str, template: Template, given: Mapping[str, str]) -> str:
        """Make a stack; the state in which it ends."""
        request = self._request(what, template, given)
        try:
            self.formation.create_stack(**request)
        except ClientError as error:
            if self.is_emulator:
                raise LeftOutError(f"the emulator refuses it: {error}") from error
            raise
        return self._ended(what)

    def update(self, what: str, template: Template, given: Mapping[str, str]) -> str:
        """Update a stack; the state in which it ends."""
        self.formation.update_stack(**self._request(what, template, given))
        return self._ended(what)

    def destroy(self, what: str) -> str:
        """Delete a stack, and the table that it keeps; the state in which it ends."""
        table = self.outputs(what).get("TableName") if self._exists(what) else None
        self.formation.delete_stack(StackName=self.name(what))
        state = self._ended(what)
        if table is not None:
            with contextlib.suppress(self.dynamodb.exceptions.ResourceNotFoundException):
                self.dynamodb.delete_table(TableName=table)
        return state

    def outputs(self, what: str) -> dict[str, str]:
        """What a stack puts out."""
        [stack] = self.formation.describe_stacks(StackName=self.name(what))["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}

    def reason(self, what: str) -> str:
        """Why a stack failed: the first reason that one of its resources gave."""
        events = self.formation.describe_stack_events(StackName=self.name(what))["StackEvents"]
        reasons = [
            each.get("ResourceStatusReason", "") for each in events if "FAILED" in each["ResourceStatus"]
        ]
        return next(filter(None, reversed(reasons)), "no reason was given")

    def _request(self, what: str, template: Template, given: Mapping[str, str]) -> dict[str, Any]:
        own = {
            "TableName": self.name(what),
            "TableStackName": self.name("base-table"),
            "TenantsStackName": self.name("base-tenant"),
        }
        return {
            "StackName": self.name(what),
            "TemplateBody": json.dumps(template, separators=(",", ":")),
            "Capabilities": ["CAPABILITY_IAM"],
            "Parameters": [
                {"ParameterKey": key, "ParameterValue": value}
                for key, value in {**own, **given}.items()
                if key in template.get("Parameters", {})
            ],
        }

    def _exists(self, what: str) -> bool:
        try:
            self.formation.describe_stacks(StackName=self.name(what))
        except ClientError:
            return False
        return True

    def _ended(self, what: str) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                [stack] = self.formation.describe_stacks(StackName=self.name(what))["Stacks"]
            except ClientError:
                # A stack that is gone has no description by its name.
                return "DELETE_COMPLETE"
            state = stack["StackStatus"]
            if not state.endswith("IN_PROGRESS"):
                return state
            time.sleep(self.poll_seconds)
        raise ProblemError(f"{self.name(what)} did not end within {PATIENCE_SECONDS:.0f} s")


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.smoke_stacks", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument(
        "given", nargs="*", metavar="NAME=VALUE", help="a parameter that only the account can give"
    )
    parser.add_argument("--endpoint-url", help="an emulator on this machine in place of AWS")
    parser.add_argument("--page", type=Path, help="the page whose section is replaced by what this says")
    parser.add_argument("--where", default="AWS", help="the section: AWS, or the emulator's name and version")
    options = parser.parse_args()
    if not all("=" in each for each in options.given):
        parser.error("give parameters as NAME=VALUE")
    given = dict(each.split("=", 1) for each in options.given)
    at = {"endpoint_url": options.endpoint_url}
    is_emulator = options.endpoint_url is not None
    results = []
    with (
        contextlib.closing(boto3.client("cloudformation", **at)) as formation,
        contextlib.closing(boto3.client("dynamodb", **at)) as dynamodb,
    ):
        try:
            for result in Stacks(formation, dynamodb, given, is_emulator=is_emulator).run():
                results.append(result)
                sys.stdout.write(f"{result.verdict:9} {result.check}: {result.says}\n")
                sys.stdout.flush()
        except (ProblemError, LeftOutError, ClientError, BotoCoreError) as error:
            sys.exit(str(error))
    if options.page is not None:
        record(options.page, f"Stacks on {options.where}", results)
    return int(any(each.verdict == PROBLEM for each in results))


if __name__ == "__main__":
    sys.exit(main())
