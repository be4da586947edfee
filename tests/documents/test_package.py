"""What the package index gives is enough: the wheel has the template, and README leads to nothing that is not there."""

import functools
import json
import os
import re
import shutil
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from langgraph.checkpoint.dynamodb._format.schema import TEMPLATE_COMMAND
from tests.infra.rendering import load, render
from tests.support.documents import ROOT
from tests.support.programs import ran

UV = str(Path(sys.executable).with_name("uv"))
IMAGES = {
    name: (ROOT / "infra" / name / "Dockerfile").read_text(encoding="utf-8")
    for name in ("gateway", "examples/ecs-agent")
}
ARGUMENTS = TEMPLATE_COMMAND.split()[1:]
OURS = ("langgraph/cache/dynamodb/", "langgraph/checkpoint/dynamodb/", "langgraph/store/dynamodb/")
LINK = re.compile(r"\[[^\]]*\]\(([^)]*)\)")


def _run(*command: str, **variables: str) -> str:
    """Run a program from a folder that has nothing of the source tree, and return what it printed."""
    return ran(*command, cwd="/", env={**os.environ, **variables}).stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with the source distribution, and the wheel that was built from it, without the network."""
    folder = tmp_path_factory.mktemp("dist")
    isolation = ["--no-build-isolation", "--python", sys.executable]
    _run(UV, "build", "--quiet", "--offline", *isolation, "--out-dir", str(folder), str(ROOT))
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """Give the wheel."""
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def index_page(wheel: Path) -> str:
    """Give what the package index shows."""
    with zipfile.ZipFile(wheel) as content:
        (name,) = [each for each in content.namelist() if each.endswith("/METADATA")]
        return str(Parser().parsestr(content.read(name).decode()).get_payload())


@pytest.mark.search
def test_the_installed_package_prints_templates_and_documents_without_the_source_tree(
    wheel: Path, tmp_path: Path
) -> None:
    _run(UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--target", str(tmp_path), str(wheel))
    python = functools.partial(_run, sys.executable, PYTHONPATH=str(tmp_path))
    listed = python(*ARGUMENTS, "--list")
    assert listed == _run(sys.executable, *ARGUMENTS, "--list")
    sources = {
        path.parent.name if path.stem == "template" else path.stem: path
        for path in (ROOT / "infra").rglob("*.yaml")
    }
    assert sorted(line.split()[0] for line in listed.splitlines()) == sorted(sources)
    assert python(*ARGUMENTS) == sources["table"].read_text(encoding="utf-8")
    for name, path in sources.items():
        assert python(*ARGUMENTS, name) == path.read_text(encoding="utf-8")
    for name in ("runbook", "deploy", "migrating"):
        document = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        assert python(*ARGUMENTS[:-1], "docs", name) == document
    for package in OURS:
        where = f"import {package.strip('/').replace('/', '.')} as package; print(package.__file__)"
        assert python("-c", where).startswith(str(tmp_path))


@pytest.mark.search
@pytest.mark.parametrize("image", IMAGES)
def test_an_image_is_built_from_what_its_file_copies(image: str, tmp_path: Path) -> None:
    """There is no builder here, so this takes the package's own build: what a file copies is all that it needs."""
    copied = [line.split()[1:] for line in IMAGES[image].splitlines() if line.startswith("COPY ")]
    source = tmp_path / "src"
    source.mkdir()
    for *files, target in copied:
        for file in files:
            into = tmp_path / target.strip("/") if target.startswith("/") else tmp_path / "app"
            if (ROOT / file).is_dir():
                shutil.copytree(ROOT / file, into, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                into.mkdir(exist_ok=True)
                shutil.copy(ROOT / file, into)
    isolation = ["--no-build-isolation", "--python", sys.executable]
    _run(UV, "build", "--quiet", "--offline", "--wheel", *isolation, "--out-dir", str(tmp_path), str(source))
    assert list(tmp_path.glob("*.whl"))
    ignored = (ROOT / "infra" / image / "Dockerfile.dockerignore").read_text().splitlines()
    assert {"!docs", "!infra/**/*.yaml", "!langgraph", "!constraints", "!pyproject.toml"} <= set(ignored)


def test_an_image_is_made_of_what_was_pinned_by_digest_and_hashes() -> None:
    (base,) = {line for text in IMAGES.values() for line in text.splitlines() if line.startswith("FROM ")}
    assert re.fullmatch(r"FROM python:3\.13-slim@sha256:[0-9a-f]{64}", base)
    for text in IMAGES.values():
        others, own = re.findall(r"pip install --no-cache-dir --no-deps (.*?) (?:\\|&&)", text)
        assert others == "--require-hashes --requirement /src/images.txt"
        assert own == "--no-build-isolation /src"
    pins = (ROOT / "constraints/images.txt").read_text(encoding="utf-8")
    assert "://" not in pins
    names, hashes = zip(*(each.split(" \\\n", 1) for each in re.split(r"\n(?=\w)", pins)[1:]), strict=True)
    assert all(re.match(r" +--hash=sha256:[0-9a-f]{64}\b", each) for each in hashes)
    assert {*names} <= {*(ROOT / "constraints/aioboto3.txt").read_text(encoding="utf-8").split()}


def test_what_is_installed_is_audited() -> None:
    """The pins of the images, and those that `make` installs."""
    files = [(ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "infra/infra.mk")]
    installing = "\n".join([*files, *IMAGES.values()])
    installed = re.findall(r"(?:--constraint|COPY) (constraints/\S+\.txt)", installing)
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert {*re.findall(r"pip-audit .*--requirement (\S+)", workflow)} == {*installed}


@pytest.mark.parametrize("role", ["agent", "runner", "operator", "reader", "tenant"])
def test_a_policy_as_json_is_that_of_the_template(role: str) -> None:
    stack = render(load("table.yaml"))
    arn = stack.outputs["TableArn"]
    printed = json.loads(_run(sys.executable, *ARGUMENTS, "--policy", role, "--table-arn", arn))
    if role == "tenant":
        given = {"TableStackName": "checkpoints"}
        stack = render(load("tenant.yaml"), given, exports=stack.exports)
    assert printed == stack.properties(f"{role.title()}Policy")["PolicyDocument"]


@pytest.mark.search
def test_no_link_on_the_package_index_is_relative(index_page: str) -> None:
    assert {each for each in LINK.findall(index_page) if not each.startswith("https://")} == set()


@pytest.mark.search
def test_every_file_that_readme_names_is_in_the_source_distribution(built: Path, index_page: str) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        names = {each.partition("/")[2] for each in content.getnames()}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = {each.partition("#")[0] for each in LINK.findall(readme) if not each.startswith("https://")}
    assert "docs/design.md" in linked
    assert all((ROOT / each).exists() for each in linked)
    assert {each for each in linked if not any(name.startswith(each) for name in names)} == set()
    # What the tests and the site are made from besides.
    assert {"README.md", "Makefile", "mkdocs.yml"} <= names
    assert "--no-binary :all: langgraph-dynamodb" in index_page


@pytest.mark.search
def test_the_wheel_holds_nothing_of_langgraphs_own_folders(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = [each for each in content.namelist() if ".dist-info/" not in each]
    assert names
    assert {each for each in names if not each.startswith(OURS)} == set()
    assert [each for each in OURS if f"{each}__init__.py" not in names] == []
    assert [each for each in OURS if f"{each}py.typed" not in names] == []
