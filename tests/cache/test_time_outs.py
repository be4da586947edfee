"""A dead endpoint holds up a node for no longer than the cache retries."""

from __future__ import annotations

from botocore.config import Config

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb._format.limits import CACHE_RETRY_SECONDS
from langgraph.checkpoint.dynamodb._runtime.clients import Clients


def _time_outs(client_config: Config | None = None) -> tuple[float, float]:
    cache: DynamoDBCache[int] = DynamoDBCache(
        "the-table", region_name="us-east-1", client_config=client_config
    )
    assert isinstance(cache.transport, Clients)
    with cache:
        config = cache.transport.client().meta.config
        return config.connect_timeout, config.read_timeout


def test_an_attempt_takes_no_longer_than_the_retries() -> None:
    """An endpoint that accepts connections and answers nothing would hold up each node for the saver's time-outs."""
    assert max(_time_outs()) <= CACHE_RETRY_SECONDS


def test_a_configuration_that_is_given_is_used() -> None:
    assert _time_outs(Config(connect_timeout=7, read_timeout=8)) == (7, 8)
