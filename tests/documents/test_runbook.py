"""docs/runbook.md quotes what the package says, and its commands do what it says: each block runs."""

import ast
import contextlib
import json
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from langgraph.checkpoint.serde import jsonplus
from langgraph.types import Command

import langgraph.checkpoint.dynamodb as package
from langgraph import pregel
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from tests.support import graphs
from tests.support.checkpoints import all_items, store, thread_config
from tests.support.programs import ran
from tools.engine import Engine

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "runbook.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^##? (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
TABLE, THREAD = "langgraph-checkpoints", "thread-1"
# What one sees

LOGS = "".join(re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)).splitlines()
ROWS = re.findall(r"^\| `(.+?)`.* \| .+ \|$", SECTIONS["Errors by message"], re.MULTILINE)
# What stands in messages for values: AWS's words, a method of its client, names, numbers, and a whole state.
VALUES = re.compile(
    r"Table\w+Exceeded of arn:aws:dynamodb:|KMS key access denied error: |batch_write_item|dynamodb:Query"
    r"|PK and SK|langgraph-checkpoint-aws|'aes'|attempts|StateSnapshot.*|\d+"
)


def _text(node: ast.AST) -> str:
    """Return a string of the source, with dots for the values in it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "..."


def _texts() -> str:
    """Return every string of the package, and of what says the rest: LangGraph's."""
    folders = (Path(each.__file__ or "").parent for each in (package, jsonplus, pregel))
    sources = (each.read_text(encoding="utf-8") for folder in folders for each in folder.rglob("*.py"))
    return "\n".join(_text(node) for source in sources for node in ast.walk(ast.parse(source)))


def test_the_page_quotes_what_is_said() -> None:
    """That it is said, and when, is tested where it is raised."""
    said = _texts()
    assert min(len(LOGS), len(ROWS)) > 10
    for quoted in (*LOGS, *ROWS):
        parts = [each.strip(" ();:") for each in VALUES.sub("...", quoted).split("...")]
        assert [each for each in parts if each not in said] == [], quoted


# What one does

LOOKS = 60
# What a command gives that was not carried out.
FOUND = f"arn:aws:dynamodb:us-east-1:123456789012:table/{TABLE}/backup/1"
# How the programs that the page names are called: the AWS CLI, which a loop that waits has to ask many times before the
# table is there, and which only checks the options of what the emulator does not have, or, with CloudWatch, does not
# understand when the CLI asks it; this package's command line; and make, which says what it would do.
PROGRAMS = {
    "aws": f"""
        case "$*" in
        *"--query Table.TableStatus "*)
            looks=$(($(cat looks) + 1))
            if [ $looks -lt {LOOKS} ]; then echo $looks > looks; echo CREATING; exit; fi
            echo 0 > looks;;
        "cloudwatch "*) CHECK_ONLY=1;;
        esac
        if [ -z "${{CHECK_ONLY:-}}" ]; then exec "$AWS_CLI" "$@"; fi
        # What the CLI finds nothing wrong with, it sends; there is nobody there.
        AWS_MAX_ATTEMPTS=1 "$AWS_CLI" "$@" --endpoint-url http://127.0.0.1:9 2> sent || true
        grep "Could not connect to the endpoint" sent > /dev/null || {{ cat sent >&2; exit 1; }}
        echo {FOUND}
    """,
    "langgraph-dynamodb": f"""
        exec {sys.executable} -c 'from langgraph.checkpoint.dynamodb.cli import main; main()' "$@"
    """,
    "make": f'exec {shutil.which("make")} --dry-run --directory {REPOSITORY} "$@"',
    "sleep": "exit 0",
}
NOT_RUN = re.compile(r"^(.*?)  # not run here$", re.MULTILINE)


@dataclass(frozen=True)
class Night:
    """An account on a bad day: a table called as the page's is, in an emulator, and a shell."""

    engine: Engine
    folder: Path
    environment: dict[str, str]

    def client(self, service: Any) -> Any:
        """A client of a service."""
        return boto3.client(service, endpoint_url=self.engine.endpoint_url)

    def saver(self, **options: Any) -> DynamoDBSaver:
        """A saver of the table."""
        return DynamoDBSaver(TABLE, endpoint_url=self.engine.endpoint_url, **options)

    def run(self, *blocks: str) -> str:
        """Run blocks of commands in one shell; the first command that fails ends it."""
        script = NOT_RUN.sub(r"export CHECK_ONLY=1; \1; unset CHECK_ONLY", "".join(blocks))
        shell = ("/bin/bash", "-euo", "pipefail", "-c", script)
        return ran(*shell, cwd=self.folder, env=self.environment).stdout


@pytest.fixture
def night(engine: Engine, aws_cli: Path, tmp_path: Path) -> Iterator[Night]:
    """Give an account with the table, in which thread-1 waits for an answer."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/bash\n{textwrap.dedent(text)}")
        (programs / name).chmod(0o755)
    (tmp_path / "looks").write_text("0")
    night = Night(
        engine,
        tmp_path,
        {
            **engine.environment(),
            "AWS_CLI": str(aws_cli),
            "AWS_ENDPOINT_URL": engine.endpoint_url,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY),
        },
    )
    with night.saver() as saver:
        saver.setup()
        graphs.approvals(saver).invoke({"log": ["begun"]}, thread_config(THREAD))
    yield night
    with contextlib.closing(night.client("dynamodb")) as dynamodb:
        for name in dynamodb.list_tables()["TableNames"]:
            dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
            dynamodb.delete_table(TableName=name)


def blocks_of(heading: str) -> list[str]:
    """The blocks of commands of a section."""
    found = re.findall(r"^( *)```sh\n(.*?)^ *```$", SECTIONS[heading], re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for _, block in found]


COUNTED = [
    f"{direction}{cause}"
    for cause in re.findall(r"^\| `(\w+)Exceeded` \|", PAGE, re.MULTILINE)
    for direction in ("Read", "Write")
]

Scene = Callable[[Night, list[str]], None]


def _first_look(night: Night, blocks: list[str]) -> None:
    assert "table" in night.run(*blocks)


def _throttled_today(night: Night, blocks: list[str]) -> None:
    said = night.run(*blocks)
    assert [line for line in said.splitlines() if line.startswith(("Read", "Write"))] == COUNTED
    assert "MaxWriteRequestUnits=20000" in said
    assert "checkpoints" in said


def _at_the_limit(night: Night, blocks: list[str]) -> None:
    assert night.run(*blocks).split() == [FOUND, FOUND]


def _key_away_for_good(night: Night, blocks: list[str]) -> None:
    with (
        contextlib.closing(night.client("kms")) as kms,
        contextlib.closing(night.client("dynamodb")) as dynamodb,
    ):
        key = kms.create_key()["KeyMetadata"]
        dynamodb.delete_table(TableName=TABLE)
        dynamodb.create_table(
            **table_schema(TABLE),
            SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key["Arn"]},
        )
        kms.schedule_key_deletion(KeyId=key["KeyId"], PendingWindowInDays=7)
        said = night.run(*blocks)
        assert "PendingDeletion" in said
        assert "kms:*" in said
        assert kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]["KeyState"] == "Enabled"


def _busy(night: Night, blocks: list[str]) -> None:
    with night.saver() as saver, saver.thread_lock(THREAD):
        held, claimed = night.run(*blocks).split()
    assert abs(int(held) / 1000 - time.time()) < 120
    assert claimed == "None"


def _damaged_thread(night: Night, blocks: list[str]) -> None:
    with contextlib.closing(night.client("dynamodb")) as dynamodb:
        (*_, head) = all_items(dynamodb, TABLE, begins="C#")
        dynamodb.put_item(TableName=TABLE, Item={**head, "body": {"S": "nonsense"}})
    assert "damaged" in night.run(*blocks)


def _cut_thread(night: Night, blocks: list[str]) -> None:
    with night.saver() as saver:
        where: Any = thread_config("thread-1")
        saver.delete_thread("thread-1")
        for number in range(3):
            counters = {"counters_since_delta_snapshot": {"log": (number + 1, 0)}}
            where = store(saver, where, str(number), {"number": number}, run_id=f"run-{number}", **counters)
        saver.delete_for_runs(["run-1"])
    said = night.run(*blocks)
    assert "resume from a checkpoint that has a snapshot, or restore the thread from a backup" in said
    # The one before the run that was deleted is whole.
    assert re.search(r"^0 ", said, re.MULTILINE)


def _lost_table(night: Night, blocks: list[str]) -> None:
    new = f"{TABLE}-2"
    with contextlib.closing(night.client("dynamodb")) as dynamodb:
        arn = dynamodb.describe_table(TableName=TABLE)["Table"]["TableArn"]
        dynamodb.tag_resource(ResourceArn=arn, Tags=[{"Key": "team", "Value": "agents"}])
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Resource": f"{arn}/index/*"}]}
        dynamodb.put_resource_policy(ResourceArn=arn, Policy=json.dumps(policy))
        night.run(*blocks)
        table = dynamodb.describe_table(TableName=new)["Table"]
        backups = dynamodb.describe_continuous_backups(TableName=new)["ContinuousBackupsDescription"]
        expiry = dynamodb.describe_time_to_live(TableName=new)["TimeToLiveDescription"]
        assert expiry == {"AttributeName": "expires_at", "TimeToLiveStatus": "ENABLED"}
        assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
        assert table["DeletionProtectionEnabled"]
        tags = dynamodb.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]
        assert tags == [{"Key": "team", "Value": "agents"}]
        (statement,) = json.loads(dynamodb.get_resource_policy(ResourceArn=table["TableArn"])["Policy"])[
            "Statement"
        ]
        assert statement["Resource"] == f"{table['TableArn']}/index/*"


def _answered_wrongly(night: Night, blocks: list[str]) -> None:
    restore_table, restore_thread, clear_up = blocks
    night.run(restore_table)
    with night.saver() as saver:
        graph = graphs.approvals(saver)
        asked = graph.get_state(thread_config(THREAD)).interrupts
        graph.invoke(Command(resume={each.id: "a wrong answer" for each in asked}), thread_config(THREAD))
    said = night.run(restore_thread)
    assert f"copied: thread '{THREAD}' of table {TABLE}-at-nine" in said
    with night.saver() as saver:
        graph = graphs.approvals(saver)
        kept = graph.get_state(thread_config(f"{THREAD}-before"))
        assert kept.values["log"].count("travel: a wrong answer") == 1
        asked = graph.get_state(thread_config(THREAD)).interrupts
        answers: Any = Command(resume={each.id: "yes" for each in asked})
        graph.invoke(answers, thread_config(THREAD))
        log = graph.get_state(thread_config(THREAD)).values["log"]
        assert sorted(log) == ["begun", "budget: yes", "closed after 4", "filed", "travel: yes"]
    night.run(clear_up)
    with night.saver() as saver, contextlib.closing(night.client("dynamodb")) as dynamodb:
        assert saver.get_tuple(thread_config(f"{THREAD}-before")) is None
        assert dynamodb.list_tables()["TableNames"] == [TABLE]


# What is shown under one heading is used by those below it.
SCENES: list[tuple[str, Scene]] = [
    ("Runbook", _first_look),
    ("Throttling", _throttled_today),
    ("Account limit", _at_the_limit),
    ("A key that cannot be used", _key_away_for_good),
    ("`ThreadBusyError`", _busy),
    ("`CheckpointCorruptionError`", _damaged_thread),
    ("`CheckpointCorruptionError`", _cut_thread),
    ("Restore the table from a backup (point-in-time recovery)", _lost_table),
    ("Restore a damaged or deleted thread", _answered_wrongly),
]


def test_every_section_with_commands_is_followed() -> None:
    assert [heading for heading in SECTIONS if blocks_of(heading)] == list(dict(SCENES))


@pytest.mark.search
@pytest.mark.engines("moto")
@pytest.mark.parametrize(("heading", "scene"), SCENES)
def test_the_commands_of_a_section_run_in_their_order(night: Night, heading: str, scene: Scene) -> None:
    scene(night, blocks_of(heading))
