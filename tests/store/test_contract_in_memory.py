"""The contract of the store once more, on the DynamoDB in memory: for `make mutants`, which starts no engine."""

import inspect
import time
from typing import Any

import boto3
import pytest
from botocore import xform_name

from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.store.dynamodb import DynamoDBStore
from tests.conftest import Closed
from tests.store import test_contract, test_paging, test_vectors
from tests.store.conftest import MakeStore
from tests.store.test_paging import events, paged
from tests.store.test_vectors import indexed
from tests.support.dynamodb_model import DynamoDBModel
from tests.support.harness import TABLE

__all__ = ["events", "indexed", "paged"]

# Fixtures that the model has not, and a test of units, which it does not count.
OF_AN_ENGINE = {"engine", "client", "table_name", "traffic", "watched"}
globals().update(
    {
        name: each
        for module in (test_contract, test_paging, test_vectors)
        for name, each in vars(module).items()
        if name.startswith("test_") and name != "test_all_pages_cost_what_one_search_does"
        if not OF_AN_ENGINE & inspect.signature(each).parameters.keys()
    }
)


@pytest.fixture
def make_store(closed: Closed, monkeypatch: pytest.MonkeyPatch) -> MakeStore:
    """Give a factory of stores on a table in memory."""
    model = DynamoDBModel(table_schema(TABLE), time.time)
    client = boto3.client(
        "dynamodb", region_name="eu-central-1", aws_access_key_id="key", aws_secret_access_key="secret"
    )

    def answer(name: str, params: dict[str, Any]) -> Any:
        # The model counts no units.
        return model.handle(
            xform_name(name), {key: each for key, each in params.items() if key != "ReturnConsumedCapacity"}
        )

    monkeypatch.setattr(client, "_make_api_call", answer)
    return lambda **options: closed(DynamoDBStore(TABLE, client=client, **options))
