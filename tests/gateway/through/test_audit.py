"""The audit trail: which principal reached which thread, by a keyed digest and by the ids that CloudTrail has."""

import hashlib
import hmac
import math
import re
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.gateway import Principal
from langgraph.checkpoint.dynamodb.gateway.access_log import RequestRecord
from langgraph.checkpoint.dynamodb.gateway.asking import asking, patient
from langgraph.checkpoint.dynamodb.gateway.limits import Shares, slot
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.gateway.conftest import Lines
from tests.gateway.through.conftest import NO_CERTIFICATES
from tests.support.checkpoints import noise, store, thread_config
from tests.support.gateway_service import gateway_service
from tools.engine import Engine

KEY = b"k" * 16
DIGEST = hmac.new(KEY, b"thread", hashlib.sha256).hexdigest()


@pytest.mark.engines("dynamodb-local")
@pytest.mark.parametrize("key", [KEY, None])
def test_the_log_joins_threads_and_awss_requests_and_what_is_stored_is_counted(
    engine: Engine, table_name: str, key: bytes | None, lines: Lines
) -> None:
    saver = DynamoDBSaver(table_name, endpoint_url=engine.endpoint_url, region_name=engine.region_name)
    with (
        gateway_service(saver, audit_key=key) as url,
        HttpCheckpointSaver(url, client_options={"verify": NO_CERTIFICATES}) as remote,
    ):
        store(remote, thread_config("thread"), "1", {"log": noise(30_000)})
        assert remote.get_tuple(thread_config("thread")) is not None
        counted = httpx.get(f"{url}/metrics").text
    # What is stored is counted, in any case.
    (stored,) = re.findall(r'tenant_stored_bytes_total\{tenant="\(none\)"\} (.+)', counted)
    assert 30_000 < float(stored) < 32_000
    documents = [each.msg for each in lines() if isinstance(each.msg, dict)]
    logged = [each for each in documents if each["endpoint"].startswith("checkpoints/")]
    assert logged
    if key is None:
        assert not any({"threads", "aws_request_ids"} & each.keys() for each in logged)
        return
    assert {digest for each in logged for digest in each["threads"]} == {DIGEST}
    assert all(each["aws_request_ids"] for each in logged)
    ids = [each for line in logged for each in line["aws_request_ids"]]
    assert len(ids) == len(set(ids))


async def test_a_request_that_aws_refuses_is_in_the_trail() -> None:
    response: Any = {"Error": {"Code": "AccessDeniedException"}, "ResponseMetadata": {"RequestId": "refused"}}

    async def refuse(_: Call) -> Any:
        raise ClientError(response, "GetItem")

    async def lost(_: Call) -> Any:
        raise ConnectionError

    call = Call("get_item", {"Key": {"PK": {"S": "thread#"}, "SK": {"S": "T"}}})
    record = RequestRecord("1", "e")
    async with slot(Shares(2), Principal("a")) as place:
        for fails, error in ((refuse, ClientError), (lost, ConnectionError)):
            clients: Any = SimpleNamespace(asend_once=fails)
            with pytest.raises(error), asking(place, math.inf, record):
                await patient(clients, 60)(call)
    assert record.audit(KEY) == {"threads": [DIGEST], "aws_request_ids": ["refused"]}
