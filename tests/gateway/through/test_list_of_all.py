"""What lists through client and service leave out: nothing that a damaged thread hides, and by any filter the same."""

import collections
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointFormatError
from langgraph.checkpoint.dynamodb.http import operations
from tests.conftest import MakeSaver
from tests.gateway.through.conftest import MakeRemote
from tests.support.checkpoints import checkpoint_of, store, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")


def _names(found: Any) -> list[tuple[str, str]]:
    return [(each.config["configurable"]["thread_id"], each.checkpoint["id"]) for each in found]


def _until_failure(
    listing: Iterator[Any], error: type[Exception] = CheckpointFormatError
) -> list[tuple[str, str]]:
    found: list[Any] = []
    with pytest.raises(error):
        collections.deque(map(found.append, listing), 0)
    return _names(found)


def test_a_damaged_thread_does_not_keep_others_from_being_listed_on_any_page(
    make_saver: MakeSaver,
    make_remote: MakeRemote,
    own_client: Any,
    table_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operations, "_PAGE_MAX", 3)
    saver, remote = make_saver(), make_remote()
    for number in range(4):
        for step in range(5):
            metadata: Any = {"source": "loop", "run_id": "r"}
            saver.put(thread_config(f"{number}"), checkpoint_of(f"{step}", {}), metadata, {})
    own_client.update_item(
        TableName=table_name,
        Key={PARTITION_KEY: {"S": "1#"}, SORT_KEY: {"S": "C#2#"}},
        UpdateExpression="SET v = :newer",
        ExpressionAttributeValues={":newer": {"N": "99"}},
    )
    for metadata_filter in (None, {"run_id": "r"}):
        found = _until_failure(remote.list(None, filter=metadata_filter))
        others = sorted(each for each in found if each[0] != "1")
        assert others == [(thread, f"{step}") for thread in "023" for step in range(5)]


class Foreign(JsonPlusSerializer):
    """The serializer of another agent."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialize a value as a type that no other serializer knows."""
        return "own", super().dumps_typed(obj)[1]


def test_what_another_serializer_stored_does_not_end_the_list(
    make_saver: MakeSaver, make_remote: MakeRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_PAGE_MAX", 3)
    for number in range(20):
        for step in range(2):
            by = make_remote(serde=Foreign()) if (number, step) == (6, 1) else make_remote()
            store(by, thread_config(f"{number}"), f"{step}", {"a": 1})
    for saver in (make_saver(), make_remote()):
        found = _until_failure(saver.list(None), CheckpointerConfigurationError)
        assert len(found) == 2 * 19
        assert len(_until_failure(saver.list(thread_config("6")), CheckpointerConfigurationError)) == 0


VALUES = [{3}, 2**70, datetime(2026, 1, 2, tzinfo=timezone.utc), UUID(int=5), b"raw", [b"\xff"], 1.5, None]
ONE = Decimal(1)


class Level(IntEnum):
    """An object that equals a number."""

    HIGH = 2


@pytest.mark.parametrize(
    ("value", "wanted", "count"),
    [
        *((each, each, 2) for each in VALUES),
        *((each, each, 0) for each in ((1, 2), "\ud800")),
        *((ONE, 1, 2), (Level.HIGH, 2, 2), ([ONE], [1], 2), ({"of": ONE}, {"of": 1}, 2), (ONE, 2, 0)),
    ],
    ids=repr,
)
def test_a_filter_may_have_whatever_metadata_have_or_what_equals_it(
    make_saver: MakeSaver,
    make_remote: MakeRemote,
    monkeypatch: pytest.MonkeyPatch,
    value: Any,
    wanted: Any,
    count: int,
) -> None:
    # The next page is asked for with the same filter.
    monkeypatch.setattr(operations, "_PAGE_FIRST", 1)
    saver, remote = make_saver(), make_remote()
    stored: list[tuple[Any, Any]] = [(saver, value), (saver, "other"), (remote, value)]
    for number, (by, each) in enumerate(stored):
        metadata: Any = {"source": "loop", "of": each}
        by.put(thread_config("t"), checkpoint_of(f"{number}", {}), metadata, {})
    for config in (thread_config("t"), None):
        assert list(remote.list(config)) == list(saver.list(config))
        here = list(saver.list(config, filter={"of": wanted}))
        assert len(here) == count
        assert list(remote.list(config, filter={"of": wanted})) == here
        assert list(remote.list(config, filter={"of": wanted, "source": "loop"}, limit=1)) == here[:1]
