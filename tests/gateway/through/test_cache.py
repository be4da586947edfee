"""The node cache through the gateway: every test of the cache, and what is the gateway's own."""

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.cache.dynamodb.entries import CacheStorage
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import Limits, node_calls
from langgraph.checkpoint.dynamodb.http import HttpCache
from tests.cache import test_cache
from tests.cache.test_cache import A
from tests.conftest import Closed
from tests.gateway.through.conftest import NO_CERTIFICATES, Serve
from tests.support.checkpoints import noise

pytestmark = pytest.mark.engines("dynamodb-local")

# The same tests, with the fixture of this module.
globals().update(
    {
        name: each
        for name, each in vars(test_cache).items()
        # A missing table is the gateway's, an entry that is too large is refused there, and it counts the units.
        if name.startswith("test_") and name != "test_what_is_logged_is_the_error_of_an_event"
    }
)


@pytest.fixture
def make_cache(
    serve: Serve, serve_saver: Serve, table_name: str, monkeypatch: pytest.MonkeyPatch, closed: Closed
) -> Callable[..., Any]:
    """Give a factory of caches through a gateway; it takes the cache's keywords, and they are closed after the test."""
    storages = list[CacheStorage]()

    def storage(**fields: Any) -> CacheStorage:
        storages.append(CacheStorage(**fields))
        return storages[-1]

    monkeypatch.setattr(node_calls, "CacheStorage", storage)

    def make(**options: Any) -> Any:
        if "client" in options:
            url = serve_saver(DynamoDBSaver(table_name, client=options.pop("client")))
        elif isinstance(options.get("serde"), EncryptedSerializer):
            # The service has the key.
            url = serve(serde=options.pop("serde"), owner_key=options.pop("owner_key"))
        else:
            url = options.pop("endpoint_url", None) or serve(table_name=options.pop("table_name", table_name))
        # Other processes may keep this machine busy.
        patient: dict[str, Any] = {"timeout": 60, "retry_seconds": 60}
        given = {"client_options": {"verify": NO_CERTIFICATES}} | patient | options
        cache = closed(HttpCache(url, **given))
        if storages:
            # That of the service, whose clock tests change.
            cache.storage = storages[-1]
        return cache

    return make


def test_an_entry_that_is_too_large_is_refused_alone(
    make_cache: Callable[..., HttpCache[Any]],
    serve_saver: Serve,
    own_client: Any,
    table_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = Limits(decompressed_bytes_max=600_000)
    url = serve_saver(DynamoDBSaver(table_name, client=own_client), limits=limits)
    cache = make_cache(endpoint_url=url)
    small, large = (("n",), "small"), (("n",), "large")
    cache.set({large: (noise(700_000), None), small: (1, None)})
    assert cache.get([small, large]) == {small: 1}
    assert "node cache entry (('n',), 'large') has 933," in caplog.text


def test_values_that_need_many_answers_are_read(
    make_cache: Callable[..., HttpCache[Any]], serve_saver: Serve, own_client: Any, table_name: str
) -> None:
    limits = Limits(body_bytes_max=10_000)
    cache = make_cache(endpoint_url=serve_saver(DynamoDBSaver(table_name, client=own_client), limits=limits))
    # More than are read at once.
    values = {(("n",), str(number)): noise(3000, number) for number in range(20)}
    for key, value in values.items():
        cache.set({key: (value, None)})
    assert cache.get(list(values)) == values


def test_a_service_that_encrypts_caches_nothing_without_a_key_for_digests(
    serve: Serve, client: Any, table_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with HttpCache[Any](serve(serde=EncryptedSerializer.from_pycryptodome_aes(key=b"k" * 16))) as cache:
        cache.set({A: (1, None)})
        assert cache.get([A]) == {}
    assert "owner_key" in caplog.text
    assert client.scan(TableName=table_name)["Items"] == []
