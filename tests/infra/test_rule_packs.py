"""What AWS Control Tower's rules and cdk-nag's packs say of a regulated deployment: nothing without a written reason.

A reason stands in the template, at the resource that it is about: `Metadata: rule_packs: skip`, with the rule's id and
a comment. One that nothing needs any more is a failure, too.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.conftest import REQUIRE_LOCAL_VARIABLE
from tests.infra.rendering import INFRA, Node, Template, load, resolve
from tests.infra.test_regulated_template import FILES, TABLE, TEMPLATES, parameters_of

PACKAGES = INFRA.parent / ".venv-node" / "node_modules"
GUARD = PACKAGES / "@cdklabs" / "cdk-validator-cfnguard"
RULES = GUARD / "rules" / "control-tower" / "cfn-guard"
PACKS = ("NIST.800.53.R5", "PCI.DSS.321")
CONTROL = re.compile(r"[A-Z]{2}-\d+(?:\([0-9a-z]+\))*(?:[a-z](?:\.\d+)?)?|\d+(?:\.\d+)+")
SYSTEM = {"Linux": "ubuntu", "Darwin": "macos"}
MACHINE = {"x86_64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}

# The rules of two programs are many; what the templates have themselves, test_regulated_template.py says.
pytestmark = pytest.mark.search

Finding: TypeAlias = tuple[str, str, str]
"""A template, a resource of it, and the rule that it breaks."""


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    """Skip where the packages are missing, which only a machine without Node is excused for."""
    if not PACKAGES.exists() or shutil.which("node") is None:
        says = "the rule packs are not installed: `make infra-check` does it where npm is"
        if os.environ.get(REQUIRE_LOCAL_VARIABLE) == "1":
            pytest.fail(says)
        pytest.skip(says)


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each template as a regulated deployment has it."""
    folder = tmp_path_factory.mktemp("templates")
    for name in TEMPLATES:
        (folder / f"{name}.json").write_text(json.dumps(resolved(name)))
    return folder


def resolved(name: str) -> Template:
    """A template with the parameters of a regulated deployment."""
    return resolve(
        load(f"{FILES.get(name, name)}.yaml"),
        parameters_of(name),
        stack_name=f"checkpoints-{name}",
        exports=TABLE.exports,
    )


def reasons() -> dict[Finding, str]:
    """What the templates give a reason for."""
    return {
        (name, logical_id, reason["id"]): reason["comment"]
        for name in TEMPLATES
        for logical_id, resource in resolved(name)["Resources"].items()
        for reason in resource["Metadata"].get("rule_packs", {}).get("skip", [])
    }


def control_tower(folder: Path) -> set[Finding]:
    """The findings of cfn-guard with the rules of Control Tower's proactive controls."""
    guard = GUARD / "bin" / SYSTEM[platform.system()] / MACHINE[platform.machine()] / "cfn-guard"
    command: list[str | Path] = [
        guard,
        "validate",
        "--rules",
        GUARD / "rules" / "control-tower" / "cfn-guard",
        "--data",
        folder,
    ]
    options = ["--structured", "--output-format", "json", "--show-summary", "none"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)  # noqa: S603
    reports = json.loads(done.stdout)
    assert {Path(report["name"]).stem for report in reports} == set(TEMPLATES), done.stderr
    return {
        (Path(report["name"]).stem, *found)
        for report in reports
        for rule in report["not_compliant"]
        for found in _broken(rule)
    }


def _broken(rule: Node) -> Iterator[tuple[str, str]]:
    """The resources that a rule of Control Tower names, with its id."""
    text = json.dumps(rule)
    [control] = set(re.findall(r"\[(CT\.[A-Z0-9.]+)\]", text))
    found = set(re.findall(r'"path": "/Resources/(\w+)', text))
    assert found, f"{control} names no resource"
    for logical_id in found:
        yield logical_id, control


def nag(folder: Path) -> list[dict[str, str]]:
    """What each rule of cdk-nag's packs for NIST 800-53 R5 and PCI DSS 3.2.1 says of each resource that it looks at."""
    output = folder.parent / f"{folder.name}-nag"
    command: list[str | Path] = [
        "node",
        Path(__file__).with_name("nag.cjs"),
        output,
        *sorted(folder.iterdir()),
    ]
    environment = {**os.environ, "NODE_PATH": str(PACKAGES)}
    subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    reports = sorted(output.glob("*-NagReport.json"))
    assert len(reports) == len(PACKS) * len(TEMPLATES)
    return [line for report in reports for line in json.loads(report.read_text())["lines"]]


def broken_rules(lines: list[dict[str, str]]) -> set[Finding]:
    """The findings among them; a rule that could not judge is one, too."""
    found = set()
    for line in lines:
        if line["compliance"] != "Compliant":
            name, _, logical_id = line["resourceId"].split("/")
            found.add((name, logical_id, line["ruleId"].split("-", 1)[1]))
    return found


def test_no_finding_is_without_a_reason_and_no_reason_without_a_finding(templates: Path) -> None:
    given = reasons()
    assert control_tower(templates) | broken_rules(nag(templates)) == given.keys()
    assert all(len(comment) > 20 for comment in given.values())


def test_what_the_rules_ask_for_is_found_missing(tmp_path: Path) -> None:
    """The packs are at work: each of these was taken from the templates, and each is missed."""
    folder = tmp_path / "templates"
    folder.mkdir()
    broken = {name: resolved(name) for name in TEMPLATES}
    regulated = broken["regulated"]["Resources"]
    regulated["TableKey"]["Properties"]["EnableKeyRotation"] = False
    regulated["Trail"]["Properties"]["EnableLogFileValidation"] = False
    regulated["TrailLogs"]["Properties"]["RetentionInDays"] = 30
    del broken["table"]["Resources"]["Table"]["Properties"]["PointInTimeRecoverySpecification"]
    alarm = broken["observability"]["Resources"]["SystemErrors"]["Properties"]
    del alarm["AlarmActions"], alarm["OKActions"]
    for name, template in broken.items():
        (folder / f"{name}.json").write_text(json.dumps(template))
    found = (control_tower(folder) | broken_rules(nag(folder))) - reasons().keys()
    assert found >= {
        ("regulated", "TableKey", "CT.KMS.PR.1"),
        ("regulated", "TableKey", "KMSBackingKeyRotationEnabled"),
        ("regulated", "Trail", "CloudTrailLogFileValidationEnabled"),
        ("regulated", "TrailLogs", "CT.CLOUDWATCH.PR.2"),
        ("table", "Table", "CT.DYNAMODB.PR.1"),
        ("table", "Table", "DynamoDBPITREnabled"),
        ("observability", "SystemErrors", "CT.CLOUDWATCH.PR.1"),
        ("observability", "SystemErrors", "CloudWatchAlarmAction"),
    }


def test_document_names_the_controls_of_rules_that_looked_and_each_that_is_not_fulfilled(
    templates: Path,
) -> None:
    document = (INFRA.parent / "docs" / "regulated.md").read_text()
    section = document.split("## The rule packs", 1)[1].split("\n## ", 1)[0]
    asked, not_done = section.split("| not done | why |")
    for _, logical_id, rule in reasons():
        assert f"`{rule}`" in not_done, f"{logical_id}: {rule}"

    lines = [line for line in nag(templates) if line["compliance"] == "Compliant"]
    filed = [
        {
            control
            for line in lines
            if line["ruleId"].startswith(pack)
            for control in CONTROL.findall(line["ruleInfo"].rpartition("(Control ID")[2])
        }
        for pack in PACKS
    ]
    tower = {rule.stem.upper().replace("-", ".") for rule in RULES.rglob("*.guard")}
    rows = [row.split("|")[2:5] for row in asked.splitlines() if re.match(r"\| [a-z].*PR\.|\| least", row)]
    assert len(rows) == 8
    for row in rows:
        for controls, known in zip(row, [*filed, tower], strict=True):
            assert {control.strip() for control in controls.split(",")} - {""} <= known
