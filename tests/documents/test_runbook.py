"""docs/runbook.md says what is seen, and its commands do what it says: each symptom is produced, each block runs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from langgraph.types import Command

from langgraph.checkpoint.dynamodb import (
    CheckpointerError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.checkpoint.dynamodb._operations import get
from langgraph.checkpoint.dynamodb._operations.reads import ChangedMeanwhileError
from langgraph.checkpoint.dynamodb._runtime.failures import account_remedy, outage_remedy
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from tests.support import graphs
from tests.support.change import change_storage
from tests.support.checkpoints import all_items, noise, store, thread_config
from tests.support.harness import Harness, commits
from tests.support.scripted import scripted_server

if TYPE_CHECKING:
    from tools.engine import Engine

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "runbook.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^##? (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
TABLE, THREAD = "langgraph-checkpoints", "thread-1"
# What is answered once is answered the next time: with its own retries a client waits for half a minute to find out.
_ONE_ATTEMPT = Config(retries={"total_max_attempts": 1})


# What one sees

Symptom = Callable[[], str]


def _said(request: Callable[[], object]) -> str:
    with pytest.raises(CheckpointerError) as raised:
        request()
    return str(raised.value)


def _answered(code: str, **details: Any) -> Exception:
    """The error that botocore makes of an answer."""
    with scripted_server() as endpoint:
        endpoint.always, endpoint.details = (400, code), details
        client = boto3.client("dynamodb", endpoint_url=endpoint.address, config=_ONE_ATTEMPT)
        with pytest.raises(client.exceptions.ClientError) as raised:
            client.query(TableName=TABLE)
        client.close()
    return raised.value


def _throttled(reason: str) -> Symptom:
    def produce() -> str:
        arn = f"arn:aws:dynamodb:us-east-1:123456789012:table/{TABLE}"
        reasons = [{"reason": reason, "resource": arn}]
        error = _answered("ProvisionedThroughputExceededException", message="", ThrottlingReasons=reasons)
        return outage_remedy(TABLE, error)

    return produce


def _key_away() -> str:
    message = "KMS key access denied error: com.amazonaws.services.kms.model.AWSKMSException: ..."
    return str(account_remedy(TABLE, _answered("AccessDeniedException", message=message)))


def _unprocessed() -> str:
    operation = Table(TABLE).batch_write([{"PK": {"S": "t#"}, "SK": {"S": "S#1"}}])

    def run() -> None:
        steps: Any = next(operation)
        while True:
            steps = operation.send([{"UnprocessedItems": each.params["RequestItems"]} for each in steps])

    return _said(run)


def _held() -> str:
    saver = _in_memory()
    with saver.thread_lock(THREAD):
        return _said(saver.thread_lock(THREAD).__enter__)


def _being_deleted() -> str:
    harness = Harness()
    harness.run(harness.process().put("1", {}))
    deletion = harness.begin(harness.process().delete_thread())
    deletion.until(lambda call: call.method == "query")
    return _said(lambda: harness.run(harness.process().delete_thread()))


def _never_stored() -> str:
    harness = Harness()
    put = harness.begin(harness.process().put("1", {}))

    def run() -> None:
        while True:
            put.until(commits("1"))
            put.go_on()
            harness.run(harness.process().delete_thread())

    return _said(run)


def _never_read() -> str:
    def changed(*_: Any) -> Iterator[Any]:
        yield from ()
        raise ChangedMeanwhileError

    harness = Harness()
    harness.run(harness.process().put("1", {}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(get, "load", changed)
        return _said(lambda: harness.process().get("1"))


def _not_rebuilt() -> str:
    saver = _in_memory()
    where: Any = thread_config(THREAD)
    for number in range(3):
        counters = {"counters_since_delta_snapshot": {"log": (number + 1, 0)}}
        where = store(saver, where, str(number), {"number": number}, run_id=f"run-{number}", **counters)
    saver.delete_for_runs(["run-1"])
    return _said(lambda: saver.get_delta_channel_history(config=where, channels=["log"]))


def _in_memory() -> DynamoDBSaver:
    harness = Harness()
    saver = DynamoDBSaver("checkpoints", region_name="us-east-1")
    storage = harness.process().storage
    change_storage(saver, table=storage.table, cache=storage.cache, clock=storage.clock, rng=storage.rng)
    runner: Any = harness
    saver.runner = runner
    return saver


def _changed(item: Callable[[Any], Any]) -> Symptom:
    """What is seen of a checkpoint of which something was changed behind the saver's back."""

    def produce() -> str:
        harness = Harness()
        harness.run(harness.process().put("1", {"noise": noise(50_000)}))
        for found in harness.model.items():
            changed = item(found)
            if changed is None:
                harness.remove(found)
            else:
                harness.change(changed)
        return _said(lambda: harness.process().get())

    return produce


def _flipped(item: Any) -> Any:
    if "body" not in item:
        return item
    return {**item, "metadata": {"S": item["metadata"]["S"].replace("loop", "fork")}}


SYMPTOMS: dict[str, Symptom] = {
    "DynamoDB throttles table ...: TableWriteKeyRangeThroughputExceeded of arn:aws:dynamodb:...": _throttled(
        "TableWriteKeyRangeThroughputExceeded"
    ),
    "DynamoDB throttles table ...": lambda: outage_remedy(
        TABLE, _answered("ThrottlingException", message="")
    ),
    "table ...: ... of ... items of a batch_write_item were still unprocessed after ... s of retries": _unprocessed,
    "DynamoDB throttles table ...: TableReadAccountLimitExceeded of arn:aws:dynamodb:...; ask AWS to raise the"
    " account's quota for one table": _throttled("TableReadAccountLimitExceeded"),
    "the KMS key of table ... cannot be used (... KMS key access denied error: ...)": _key_away,
    "thread ... is held by another runner, after ... s of waiting": _held,
    "thread ... is being deleted or pruned by another call, for over ... s; retry later, since a call that died"
    " releases it after 120 s": _being_deleted,
    "thread ... could not be stored: the thread was deleted or pruned during each of ... attempts": _never_stored,
    "item PK=... SK=... needs segments that are not in the table": _changed(
        lambda item: None if item["SK"]["S"].startswith("S#") else item
    ),
    "item PK=... SK=... is damaged: ...; restore it from a backup or point-in-time recovery": _changed(
        _flipped
    ),
    "item PK=... SK=... has format version ...": _changed(
        lambda item: {**item, "v": {"N": "99"}} if "v" in item else item
    ),
    "delta channels ... cannot be rebuilt: checkpoint ... of thread ..., namespace ..., is no longer in the table;"
    " resume from a checkpoint that has a snapshot, or start a new thread": _not_rebuilt,
    "checkpoints of thread ... were deleted while they were read, in each of ... attempts; retry the call": _never_read,
}
SEEN = "".join(re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)).splitlines()


def test_the_page_says_what_is_produced_here() -> None:
    assert list(SYMPTOMS) == SEEN


@pytest.mark.parametrize("quoted", SEEN)
def test_what_the_page_quotes_is_what_is_seen(quoted: str) -> None:
    words = ".*".join(map(re.escape, quoted.split("...")))
    assert re.search(words, SYMPTOMS[quoted](), re.DOTALL)


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
        ended = subprocess.run(  # noqa: S603  # The page's own commands.
            ["/bin/bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, f"{script}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout


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
    assert "WriteUnitsQuota=80000" in night.run(*blocks)


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
    assert re.search(r"^│ ○ 0 ", said, re.MULTILINE)


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
    ("Restoring the table", _lost_table),
    ("Restoring one thread", _answered_wrongly),
]


def test_every_section_with_commands_is_followed() -> None:
    assert [heading for heading in SECTIONS if blocks_of(heading)] == list(dict(SCENES))


@pytest.mark.search
@pytest.mark.engines("moto")
@pytest.mark.parametrize(("heading", "scene"), SCENES)
def test_the_commands_of_a_section_run_in_their_order(night: Night, heading: str, scene: Scene) -> None:
    scene(night, blocks_of(heading))
