"""The engines a test runs on, and a fresh table and savers on each of them.

A test that uses `engine`, or any fixture made from it, runs once per engine: DynamoDB Local, moto's server and,
if `LANGGRAPH_DYNAMODB_ENDPOINT` is set, whatever answers there. `@pytest.mark.engines("dynamodb-local")` limits it
to the engines named. `make test` runs it on the first of these that can run here, and `make test-all` on all of them:
a second opinion counts as a search. Where DynamoDB Local cannot run its tests are skipped with the reason, unless
`LANGGRAPH_DYNAMODB_REQUIRE_LOCAL=1`, which makes them fail. The same holds for tests that need Postgres.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import os
import re
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import boto3
import botocore.session
import hypothesis
import pytest
from botocore.loaders import create_loader

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.limits import BATCH_WRITE_ITEMS_MAX
from tests.support.checkpoints import make_table
from tests.support.traffic import Traffic
from tools.engine import (
    DYNAMODB_LOCAL,
    ENDPOINT_VARIABLE,
    EXTERNAL,
    FOREIGN_VARIABLES,
    KINDS,
    LOCAL_ENVIRONMENT,
    Engine,
    Recipe,
    describe,
    find_all,
)
from tools.postgres import Postgres, run_postgres
from tools.server import ServerUnavailableError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_TESTS = Path(__file__).parent
REQUIRE_LOCAL_VARIABLE = "LANGGRAPH_DYNAMODB_REQUIRE_LOCAL"

# A deadline would fail a test for the machine's being busy. `ci` tries the same examples everywhere and always, and
# `quick`, with which `make test` does without the long searches, a quarter of them.
hypothesis.settings.register_profile("dev", deadline=None, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("quick", hypothesis.settings.get_profile("ci"), max_examples=25)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# For tests of more than the contracts of saver, store and cache, which moto has an opinion of.
NO_SECOND_OPINION = pytest.mark.engines(EXTERNAL, DYNAMODB_LOCAL)

# The property of a test's report that names its engine.
_RAN_ON = "ran on"
tests_run: Counter[str] = Counter()

found_engines = functools.cache(find_all)

MakeSaver: TypeAlias = Callable[..., DynamoDBSaver]
"""What the fixtures `make_saver`, `make_unclosed` and `open_saver` give."""
Closed: TypeAlias = Callable[[Any], Any]
"""What the fixture `closed` gives."""


def pytest_report_header() -> list[str]:
    """Say which engines there are before anything runs on them."""
    return [f"engine {line}" for line in describe(found_engines())]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that uses an engine one run per engine that it is for; after the best, others are a search."""
    if "engine" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("engines")
    wanted = marker.args if marker else KINDS
    if not wanted or not set(wanted) <= set(KINDS):
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: engines{wanted} has to name some of {KINDS}.")
    kinds = [kind for kind in _kinds() if kind in wanted]
    best = next((kind for kind in kinds if isinstance(found_engines()[kind], Recipe)), None)
    opinions = kinds[kinds.index(best) + 1 :] if best else []
    engines = [pytest.param(kind, marks=[pytest.mark.search] if kind in opinions else []) for kind in kinds]
    metafunc.parametrize("engine", engines, indirect=True, scope="session")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of measured packages, which `make test-all` runs before all others, and what is run once more."""
    place = item.path.relative_to(_TESTS).parts[0]
    is_of_one = place.removeprefix("test_").removesuffix(".py") in measured_packages()
    if is_of_one and item.get_closest_marker("unmeasured") is None:
        item.add_marker("measured")
    if isinstance(item, pytest.Function) and item.function.__module__ != item.module.__name__:
        item.add_marker("repeated")


def lacks(says: str, *, is_required: bool = True) -> NoReturn:
    """Skip a test for what is missing here, which fails it where all has to be there."""
    if is_required and os.environ.get(REQUIRE_LOCAL_VARIABLE) == "1":
        pytest.fail(says, pytrace=False)
    pytest.skip(says)


@functools.cache
def measured_packages() -> frozenset[str]:
    """Return the names of the packages whose branches are counted."""
    settings = (_TESTS.parent / "pyproject.toml").read_text(encoding="utf-8")
    listed = settings.split("source_pkgs = [")[1].split("]")[0]
    return frozenset(re.findall(r'"langgraph\.checkpoint\.dynamodb\.(\w+)"', listed))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector pass over all that is imported and collected: it stays until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note on what a test really ran, where it ran: a worker's reports are all that pytest-xdist hands on."""
    report = yield
    if report.when == "call" and not report.skipped and isinstance(item, pytest.Function):
        engine = item.funcargs.get("engine")
        report.user_properties.append((_RAN_ON, engine.name if isinstance(engine, Engine) else "no engine"))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what ran on each engine, in whichever process."""
    tests_run.update(str(value) for name, value in report.user_properties if name == _RAN_ON)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests ran on which engine."""
    terminalreporter.section("engines")
    for name, count in sorted(tests_run.items()):
        terminalreporter.write_line(f"{count} tests ran on {name}")


def _kinds() -> list[str]:
    return [kind for kind in KINDS if kind != EXTERNAL or os.environ.get(ENDPOINT_VARIABLE)]


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Give a function that tells whoever runs the tests something at once, also where a worker's output is lost."""

    def tell(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}", file=sys.stderr)  # noqa: T201 - seeds and figures are for a person.

    return tell


@pytest.fixture(scope="session", autouse=True)
def _no_aws_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the AWS account this machine is configured for, and its files, from every test.

    Each async client loads certificates, though no engine has one: one certificate takes less than all.
    """
    bundle = Path(botocore.__file__).with_name("cacert.pem").read_text(encoding="utf-8")
    first, end, _ = bundle.partition("-----END CERTIFICATE-----\n")
    certificate = tmp_path_factory.mktemp("certificates") / "one.pem"
    certificate.write_text(first + end, encoding="utf-8")
    with pytest.MonkeyPatch.context() as environment:
        for name in FOREIGN_VARIABLES:
            environment.delenv(name, raising=False)
        for name, value in LOCAL_ENVIRONMENT.items():
            environment.setenv(name, value)
        environment.setenv("AWS_CA_BUNDLE", str(certificate))
        yield


@pytest.fixture(scope="session", autouse=True)
def _descriptions_read_once() -> Iterator[None]:
    """Let all sessions share what AWS says of its services and regions: each would look for it, and parse megabytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", functools.cache(create_loader))
        yield


@pytest.fixture(scope="session")
def _start_engine() -> Iterator[Callable[[str], Engine | ServerUnavailableError]]:
    """Start each engine once, when the first test needs it, and end them all with the session."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def start(kind: str) -> Engine | ServerUnavailableError:
            recipe = found_engines()[kind]
            return stack.enter_context(recipe.run()) if isinstance(recipe, Recipe) else recipe

        yield start


@pytest.fixture(scope="session")
def engine(
    request: pytest.FixtureRequest, _start_engine: Callable[[str], Engine | ServerUnavailableError]
) -> Engine:
    """Give a running engine; the test runs once for each."""
    engine = _start_engine(request.param)
    if isinstance(engine, Engine):
        return engine
    if request.param == DYNAMODB_LOCAL:
        lacks(str(engine))
    pytest.fail(str(engine), pytrace=False)


@pytest.fixture(scope="session")
def client(engine: Engine, _no_aws_account: None) -> Iterator[DynamoDBClient]:
    """Give a plain boto3 client of the engine, to look at the table behind the saver's back."""
    with contextlib.closing(boto3.client("dynamodb", **engine.client_options())) as dynamodb:
        yield dynamodb


@pytest.fixture(scope="session")
def _used_tables(client: DynamoDBClient) -> Iterator[list[str]]:
    """Give the tables that tests have done with, for the next ones: DynamoDB Local slows down with each it makes."""
    names: list[str] = []
    yield names
    for name in names:
        client.delete_table(TableName=name)


@pytest.fixture
def table_name(engine: Engine, client: DynamoDBClient, _used_tables: list[str]) -> Iterator[str]:
    """Give the name of an empty table, made as `setup()` makes it, that is the test's alone."""
    while _used_tables:
        name = _used_tables.pop()
        if _is_emptied(client, name):
            break
        client.delete_table(TableName=name)
    else:
        name = f"checkpoints-{uuid.uuid4().hex}"
        make_table(client, name)
    yield name
    if engine.kind == DYNAMODB_LOCAL:
        _used_tables.append(name)
    else:
        client.delete_table(TableName=name)


def _is_emptied(client: DynamoDBClient, name: str) -> bool:
    """Delete the items of a table if one batch can. Otherwise it takes less to make another table."""
    page = client.scan(TableName=name, ProjectionExpression="PK, SK", ConsistentRead=True)
    keys = page["Items"]
    if "LastEvaluatedKey" in page or len(keys) > BATCH_WRITE_ITEMS_MAX:
        return False
    deletions: Any = [{"DeleteRequest": {"Key": key}} for key in keys]
    return not keys or not client.batch_write_item(RequestItems={name: deletions})["UnprocessedItems"]


@pytest.fixture
def other_table(client: DynamoDBClient) -> Iterator[Callable[..., str]]:
    """Give what makes a table from `create_table`'s arguments; it is deleted after the test."""
    names: list[str] = []

    def make(**schema: Any) -> str:
        client.create_table(**schema)
        names.append(schema["TableName"])
        return names[-1]

    yield make
    for name in names:
        client.delete_table(TableName=name)


@pytest.fixture(scope="session")
def sessions(_no_aws_account: None) -> dict[str, Any]:
    """Give sessions for savers to share: the first client of each reads all that AWS says of its services."""
    return {"session": boto3.Session()}


@pytest.fixture
def reach(engine: Engine, sessions: dict[str, Any]) -> dict[str, Any]:
    """Give the options by which a saver, a store or a cache reaches the engine."""
    return {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name, **sessions}


@pytest.fixture
async def closed() -> AsyncIterator[Closed]:
    """Give what returns an object and closes it after the test."""
    async with contextlib.AsyncExitStack() as stack:

        def closed(made: Any) -> Any:
            stack.push_async_callback(made.aclose)
            return made

        yield closed


@pytest.fixture
def make_saver(reach: dict[str, Any], table_name: str, closed: Closed) -> MakeSaver:
    """Give a factory of savers on the table; it takes the saver's keywords, and they are closed after the test."""
    # A client has all by which it reaches the engine.
    return lambda **options: closed(
        DynamoDBSaver(table_name, **(({} if "client" in options else reach) | options))
    )


@pytest.fixture(scope="session")
def open_saver(engine: Engine, sessions: dict[str, Any]) -> Iterator[MakeSaver]:
    """Give a factory of savers on any table, which are closed with the session."""
    with contextlib.ExitStack() as stack:
        reach = {"endpoint_url": engine.endpoint_url, **sessions}
        yield lambda table, **options: stack.enter_context(DynamoDBSaver(table, **(reach | options)))


@pytest.fixture
def event_loop_for_machine() -> Iterator[asyncio.AbstractEventLoop]:
    """Give a loop that lives as long as the machine, since the savers' clients belong to one."""
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        yield loop
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """Give a Postgres server, started when the first test of a process needs it."""
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(run_postgres())
        except ServerUnavailableError as error:
            lacks(str(error))
        yield server


@pytest.fixture
def postgres_url(postgres_server: Postgres) -> Iterator[str]:
    """Give the connection string of an empty database, which is dropped after the test."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture
def own_client(engine: Engine) -> Iterator[DynamoDBClient]:
    """Give a client that is the saver's alone."""
    with contextlib.closing(boto3.client("dynamodb", **engine.client_options())) as dynamodb:
        yield dynamodb


@pytest.fixture
def traffic(own_client: DynamoDBClient) -> Traffic:
    """Give what the saver of the test sends."""
    return Traffic(own_client.meta.events)


@pytest.fixture
def saver(own_client: DynamoDBClient, table_name: str, traffic: Traffic) -> Iterator[DynamoDBSaver]:
    """Give a saver whose every request is recorded."""
    del traffic
    with DynamoDBSaver(table_name, client=own_client) as saver:
        yield saver


@pytest.fixture
def make_unclosed(engine: Engine, table_name: str) -> MakeSaver:
    """Give a factory of savers that nothing closes but the test."""
    reach: Any = {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}
    return lambda **options: DynamoDBSaver(table_name, **(({} if "client" in options else reach) | options))


@pytest.fixture
def aws_cli() -> Path:
    """Give the AWS CLI, which the environment of `make infra-check` has."""
    found = Path(__file__).parents[1] / ".venv-infra" / "bin" / "aws"
    if not found.exists():
        pytest.skip("the AWS CLI is not installed: make infra-check installs it")
    return found
