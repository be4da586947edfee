"""Errors of the set-up: they name where was looked, and tell another server from DynamoDB."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime.failures import account_remedy, is_transient, located, locating

DENIED = {"Error": {"Code": "AccessDeniedException", "Message": "no"}}


def test_an_index_that_is_being_built_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Cannot read from backfilling global secondary index: day-index"

    def fail(**_params: Any) -> None:
        raise ClientError({"Error": {"Code": "ValidationException", "Message": said}}, "Query")

    client = boto3.client("dynamodb", region_name="eu-west-3")
    monkeypatch.setattr(client, "query", fail)
    with pytest.raises(
        CheckpointerConfigurationError, match=r"^table threads in eu-west-3 has no index day-index"
    ):
        DynamoDBSaver("threads", client=client).threads()


def test_an_error_of_a_client_without_a_region_names_the_table_alone() -> None:
    with pytest.raises(ClientError) as caught, locating(object()):
        raise ClientError(DENIED, "Query")  # type: ignore[arg-type]
    assert located("threads", caught.value) == "threads"


@pytest.mark.parametrize(
    ("code", "status", "is_told"), [("404", 404, True), ("501", 501, True), ("503", 503, False)]
)
def test_a_status_instead_of_a_code_is_no_answer_of_dynamodb(
    code: str, status: int, *, is_told: bool
) -> None:
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error = ClientError(answer, "Query")
    # Whatever stands between may fail for a while, and answer 503 as an HTML page.
    assert is_transient(error) is not is_told
    assert ("another server than DynamoDB" in (account_remedy("threads", error) or "")) is is_told
