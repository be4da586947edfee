"""LangGraph's public conformance suite, in full, for both sides of the saver."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeAlias

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from tests.conftest import MakeSaver
from tests.support.sync_adapter import SyncAsAsync

OPTIONS: Mapping[str, dict[str, Any]] = {
    "encrypted": {"serde": EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")},
    "expiring": {"ttl_seconds": 3600},
}


Side: TypeAlias = Callable[[BaseCheckpointSaver[Any]], BaseCheckpointSaver[Any]]


def _async_side(saver: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    return saver


both_sides = pytest.mark.parametrize("side", [_async_side, SyncAsAsync], ids=["async", "sync"])


@both_sides
async def test_conformance_is_full(make_saver: MakeSaver, side: Side) -> None:
    await check_side(make_saver, side)


# To an engine, what is encrypted is bytes and a ttl is an attribute, so these need no second opinion.
@pytest.mark.search
@pytest.mark.engines("dynamodb-local")
@pytest.mark.parametrize("options", OPTIONS)
@both_sides
async def test_conformance_is_full_with_options(make_saver: MakeSaver, side: Side, options: str) -> None:
    await check_side(make_saver, side, **OPTIONS[options])


async def check_side(make_saver: MakeSaver, side: Side, **options: Any) -> None:
    """Let one side of a saver pass."""

    @checkpointer_test(name="DynamoDBSaver")
    async def saver_under_test() -> AsyncIterator[BaseCheckpointSaver[Any]]:
        yield side(make_saver(**options))

    await check_conformance(saver_under_test)


async def check_conformance(saver_under_test: Any) -> None:
    """Let a saver pass every part of the suite."""
    report = await validate(saver_under_test)

    failures = [failure for result in report.results.values() for failure in result.failures]
    assert not failures, "\n".join(failures)
    assert set(report.results) == {capability.value for capability in ALL_CAPABILITIES}
    for capability in ALL_CAPABILITIES:
        result = report.results[capability.value]
        assert result.detected, f"{capability} is not overridden"
        assert result.passed, f"{capability} did not pass"
        assert result.tests_passed > 0, f"{capability} ran no test"
        assert result.tests_skipped == 0, f"{capability} skipped tests"
    assert report.conformance_level() == "FULL"
