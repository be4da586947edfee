"""What the tests of deployed programs share: an emulator, and the environment of a role in it."""

from __future__ import annotations

import contextlib
import io
import json
import re
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.conftest import lacks
from tests.infra.rendering import ACCOUNT_ID, INFRA, Node, Template
from tests.infra.stacks import GIVEN
from tests.support.checkpoints import table_of_its_own
from tools.engine import LOCAL_ENVIRONMENT, Engine
from tools.server import Server

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Client: TypeAlias = Callable[[str], Any]
MINISTACK = INFRA.parent / ".venv-aiobotocore" / "bin" / "ministack"
MINISTACK_SETTINGS = {
    "GATEWAY_PORT": "{port}",
    "BIND_HOST": "127.0.0.1",
    "MINISTACK_ACCOUNT_ID": "123456789012",
    "LOG_LEVEL": "ERROR",
    # It applies policies, and whoever has this key may do everything.
    "AUTH": "true",
    "AWS_ACCESS_KEY_ID": LOCAL_ENVIRONMENT["AWS_ACCESS_KEY_ID"],
    "AWS_SECRET_ACCESS_KEY": LOCAL_ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
    # Ports of their own, for services that no template here has.
    "IOT_MTLS_ENABLED": "0",
    "SFTP_ENABLED": "0",
}


@pytest.fixture(scope="session")
def emulator() -> Iterator[Client]:
    """Give a factory of clients of an emulator that has a package in a bucket."""
    if not MINISTACK.exists():
        lacks("MiniStack is not installed: `make test-all` installs it")
    settings = [f"{name}={value}" for name, value in MINISTACK_SETTINGS.items()]
    server = Server("MiniStack", ("env", *settings, str(MINISTACK)))
    # Its types know each service by its own name only.
    any_client: Any = boto3.client
    with contextlib.ExitStack() as stack:
        reached = Engine("emulator", "emulator", stack.enter_context(server.run())).client_options()

        def make(service: str) -> Any:
            return stack.enter_context(contextlib.closing(any_client(service, **reached)))

        package = io.BytesIO()
        with zipfile.ZipFile(package, "w") as archive:
            archive.writestr("handler.py", "def handler(event, context): ...\n")
        storage = make("s3")
        storage.create_bucket(Bucket="packages")
        storage.put_object(Bucket="packages", Key="key", Body=package.getvalue())
        yield make


# What the account has, for the parameters of any template.
ACCOUNT = {
    **GIVEN["gateway.yaml"],
    **GIVEN["ecs.yaml"],
    "BrokerRoleArn": "arn:aws:iam::123456789012:role/service",
    "TableStackName": "base-table",
    "TenantsStackName": "base-tenant",
}


class Stacks:
    """The stacks of one emulator."""

    def __init__(self, client: Client) -> None:
        """Take the factory of its clients."""
        self.formation, self.dynamodb = client("cloudformation"), client("dynamodb")

    def create(self, name: str, template: Template, **given: str) -> str:
        """Make a stack; return the state in which it ends, or why it is refused."""
        try:
            self.formation.create_stack(**_request(name, template, given))
        except ClientError as error:
            return str(error)
        return self._ended(name)

    def update(self, name: str, template: Template, **given: str) -> str:
        """Update a stack; return the state in which it ends."""
        self.formation.update_stack(**_request(name, template, given))
        return self._ended(name)

    def delete(self, name: str) -> str:
        """Delete a stack; return the state in which it ends."""
        self.formation.delete_stack(StackName=name)
        return self._ended(name)

    def destroy(self, name: str) -> str:
        """Delete a stack, and the table that it keeps; return the state in which it ends."""
        kept = self.outputs(name).get("TableName")
        state = self.delete(name)
        if kept in self.dynamodb.list_tables()["TableNames"]:
            self.dynamodb.delete_table(TableName=kept)
        return state

    def outputs(self, name: str) -> dict[str, str]:
        """What a stack puts out; nothing if there is none."""
        try:
            [stack] = self.formation.describe_stacks(StackName=name)["Stacks"]
        except ClientError:
            return {}
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}

    def reasons(self, name: str) -> str:
        """Why the resources of a stack failed."""
        events = self.formation.describe_stack_events(StackName=name)["StackEvents"]
        return " ".join(each.get("ResourceStatusReason", "") for each in events)

    def _ended(self, name: str) -> str:
        for _ in range(1200):
            try:
                [stack] = self.formation.describe_stacks(StackName=name)["Stacks"]
            except ClientError:
                # A stack that is gone has no description by its name.
                return "DELETE_COMPLETE"
            if not stack["StackStatus"].endswith("IN_PROGRESS"):
                return str(stack["StackStatus"])
            time.sleep(0.05)
        return "not ended"


def _request(name: str, template: Template, given: Mapping[str, str]) -> dict[str, Any]:
    return {
        "StackName": name,
        "TemplateBody": json.dumps(template),
        "Capabilities": ["CAPABILITY_IAM"],
        "Parameters": [
            {"ParameterKey": key, "ParameterValue": value}
            for key, value in {**ACCOUNT, **given}.items()
            if key in template.get("Parameters", {})
        ],
    }


@pytest.fixture(scope="session")
def stacks(emulator: Client) -> Stacks:
    """Give the stacks of the emulator."""
    return Stacks(emulator)


def environment(address: str, credentials: dict[str, str] | None = None) -> dict[str, str]:
    """The environment in which every client reaches an emulator."""
    return {
        **Engine("emulator", "emulator", address).environment(),
        "AWS_ENDPOINT_URL": address,
        **(credentials or {}),
    }


def environment_of_role(emulator: Client, name: str, *documents: Node) -> dict[str, str]:
    """Make a role with these policies, unless it is there; return the environment of whoever has assumed it."""
    iam = emulator("iam")
    trust = {"Effect": "Allow", "Principal": {"AWS": ACCOUNT_ID}, "Action": "sts:AssumeRole"}
    trusting = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    # Tests move between workers, so the fixtures of a module may begin twice beside one emulator.
    with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=trusting)
    role = iam.get_role(RoleName=name)["Role"]["Arn"]
    for number, document in enumerate(documents):
        iam.put_role_policy(RoleName=name, PolicyName=f"{number}", PolicyDocument=json.dumps(document))
    given = emulator("sts").assume_role(RoleArn=role, RoleSessionName=name)["Credentials"]
    credentials = {
        "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
        "AWS_SESSION_TOKEN": given["SessionToken"],
    }
    return environment(iam.meta.endpoint_url, credentials)


def use(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Give an environment to this process; return the requests that its default session will have sent."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    sent: set[str] = set()

    def note(model: Any, **_: object) -> None:
        service = model.service_model.endpoint_prefix.replace("monitoring", "cloudwatch")
        sent.add(f"{service}:{model.name}")

    session = boto3.Session()
    session.events.register("before-call.*", note)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", session)
    return sent


class Said(NamedTuple):
    """What a program returned and printed, and the requests that it sent."""

    status: int
    text: str
    sent: set[str]


def verdicts(text: str) -> dict[str, str]:
    """The verdict on each check that is printed, in order."""
    lines = re.findall(r"^(ok|problem|left out) +\d+\.\d s  ([a-z-]+): \S", text, re.MULTILINE)
    return {check: verdict for verdict, check in lines}


Run: TypeAlias = Callable[..., Said]


@pytest.fixture
def run_program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Give a function that runs a program's `main` in this process, with an environment and words."""

    def run(main: Callable[[], int], variables: dict[str, str], *words: str) -> Said:
        sent = use(variables, monkeypatch)
        monkeypatch.setattr("sys.argv", ["a program", *words])
        return Said(main(), capsys.readouterr().out, sent)

    return run


@pytest.fixture
def thread_id() -> str:
    """Give the id of a thread of the test's own."""
    return uuid.uuid4().hex


@pytest.fixture(scope="module")
def made_table(client: DynamoDBClient) -> Iterator[str]:
    """Give the name of a table for all of these tests."""
    with table_of_its_own(client, "deployed") as name:
        yield name
