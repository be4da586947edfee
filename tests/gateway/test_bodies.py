"""Bodies: both encodings, compressed and not, and what is said of what is none, too large or too deep."""

from __future__ import annotations

import base64
import gzip
import json
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import ormsgpack
import pytest

from langgraph.checkpoint.dynamodb.gateway import Limits
from langgraph.checkpoint.dynamodb.gateway.bodies import decompressed
from langgraph.checkpoint.dynamodb.gateway.media import JSON, MSGPACK
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.size_limits import MARKS_MAX, NESTING_MAX, VALUES_MAX
from langgraph.checkpoint.dynamodb.gateway.wire import GetTupleRequest
from tests.gateway.conftest import MakeClient, Script

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MESSAGE = {"thread_id": "acme/1"}
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd.compress}
ENCODE: dict[Any, Any] = {JSON: lambda each: json.dumps(each).encode(), MSGPACK: ormsgpack.packb}
SMALL = Limits(body_bytes_max=2000, decompressed_bytes_max=4000)


async def post(
    client: Any, body: bytes, media: Any = JSON, path: str = "get-tuple", **headers: str
) -> tuple[int, str]:
    """Send a body; return the status, and what is said of a problem."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await client.post(
        f"/checkpoints/{path}", content=body, headers={"content-type": media.name, **given}
    )
    return answer.status_code, answer.json().get("detail", "") if answer.status_code != 200 else ""


@pytest.mark.parametrize("media", [JSON, MSGPACK], ids=lambda each: each.name)
@pytest.mark.parametrize("encoding", ["gzip", "zstd", "identity", ""])
async def test_a_body_may_be_in_either_encoding_and_compressed(
    media: Any, encoding: str, make_client: MakeClient, script: Script
) -> None:
    body = COMPRESS.get(encoding, bytes)(ENCODE[media](MESSAGE))
    assert await post(make_client(), body, media, content_encoding=encoding) == (200, "")
    assert script.asked == [GetTupleRequest.model_validate(MESSAGE)]


async def test_bytes_are_bytes_in_one_and_base64_in_the_other(
    make_client: MakeClient, script: Script
) -> None:
    client = make_client()
    have = [b"1234567812345678"]
    for media, sent in ((MSGPACK, have), (JSON, ["MTIzNDU2NzgxMjM0NTY3OA=="])):
        assert await post(client, ENCODE[media]({**MESSAGE, "have": sent}), media) == (200, "")
    assert script.asked == [GetTupleRequest.model_validate({"thread_id": "acme/1", "have": have})] * 2
    status, says = await post(client, ENCODE[JSON]({**MESSAGE, "have": ["MTIz!"]}), JSON)
    assert (status, says) == (400, "have.0: Value error, not valid base64")


@pytest.mark.parametrize(
    ("value", "held"),
    [
        (1 << 70, str(1 << 70)),
        (-(1 << 70), str(-(1 << 70))),
        ((1 << 64) - 1, (1 << 64) - 1),
        (-(1 << 63), -(1 << 63)),
        ({"a\ud83d": ["\U0001f600", "b\udc00c", 1]}, {"a\ufffd": ["\U0001f600", "b\ufffdc", 1]}),
    ],
)
def test_what_msgpack_cannot_hold_is_text_or_replaced(value: Any, held: Any) -> None:
    assert MSGPACK.decode(MSGPACK.encode({"of": value})) == {"of": held}
    assert json.loads(JSON.encode({"of": value})) == {"of": value}


def test_nothing_else_becomes_text_in_msgpack() -> None:
    with pytest.raises(TypeError):
        MSGPACK.encode({"of": {1, 2}})


@pytest.mark.parametrize("media", [JSON, MSGPACK], ids=lambda each: each.name)
@pytest.mark.parametrize("size", [10, 2000, 200_000])
@pytest.mark.parametrize(
    ("accept", "encoding"),
    [
        ("", None),
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd;q=0, GZIP", "gzip"),
        ("*;q=0", None),
        ("identity", None),
    ],
)
async def test_an_answer_is_compressed_where_that_is_asked_for_and_worth_it(
    media: Any, size: int, accept: str, encoding: str | None, make_client: MakeClient, script: Script
) -> None:
    script.answer = {"data": bytes(size)}
    headers = {"content-type": media.name, "accept-encoding": accept}
    async with make_client().stream(
        "POST", "/checkpoints/get-tuple", content=ENCODE[media](MESSAGE), headers=headers
    ) as answer:
        raw = b"".join([each async for each in answer.aiter_raw()])
    assert answer.headers["content-type"] == media.name
    chosen = encoding if size > 1000 else None
    assert answer.headers.get("content-encoding") == chosen
    expand: Any = {None: bytes, "gzip": gzip.decompress, "zstd": zstd.decompress}[chosen]
    data = bytes(size)
    assert media.decode(expand(raw))["data"] == (
        data if media is MSGPACK else base64.b64encode(data).decode()
    )


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
        ("application/json; charset=latin-1", 415),
        ("text/plain", 415),
        ("", 415),
        ("application/vnd.langgraph-dynamodb.v1+msgpack", 415),
        ("application/msgpack", 415),
    ],
)
async def test_media_types_are_ours(content_type: str, status: int, make_client: MakeClient) -> None:
    # The answer has the form of the request, whatever else a client would rather have.
    headers = {"content-type": content_type, "accept": MSGPACK.name}
    answer = await make_client().post(
        "/checkpoints/get-tuple", content=json.dumps(MESSAGE).encode(), headers=headers
    )
    assert answer.status_code == status
    if status == 200:
        assert answer.headers["content-type"] == JSON.name
    else:
        assert MSGPACK.name in answer.headers["accept-post"]


# What is none


NO_JSON = {
    "nothing": b"",
    "half": b'{"thread_id": "acme',
    "two": b'{"thread_id": "a"} {"thread_id": "b"}',
    "no number": b'{"thread_id": NaN}',
    "infinity": b'{"thread_id": -Infinity}',
    "half a pair": b'{"thread_id": "\\ud800"}',
    "half a pair as bytes": b'{"thread_id": "\xed\xa0\x80"}',
    "no UTF-8": b'{"thread_id": "\xff"}',
    "a huge number": b'{"thread_id": ' + b"9" * 5000 + b"}",
    "UTF-16": json.dumps(MESSAGE).encode("utf-16"),
    "quotes": b'"\\"' * 600,
}
NO_MSGPACK = {
    "nothing": b"",
    "half": ormsgpack.packb(MESSAGE)[:-1],
    "two": ormsgpack.packb(MESSAGE) * 2,
    "an extension": b"\x81\xa1a\xd4\x01\x00",
    "never used": b"\xc1",
    "no UTF-8": b"\x81\xa9thread_id\xa1\xff",
    "a number as a key": b"\x81\x01\x01",
    "more than there is": b"\xdd\xff\xff\xff\xff",
    "a long text of nothing": b"\xdb\xff\xff\xff\xff",
}
NO_MESSAGE: dict[str, Any] = {
    "a text": "acme/1",
    "a list": [MESSAGE],
    "null": None,
    "a number": 7,
    "another field": {**MESSAGE, "thread": "acme/1"},
    "another type": {"thread_id": 7},
    "an empty id": {"thread_id": ""},
    "nothing of it": {},
}


@pytest.mark.parametrize(
    ("body", "media"),
    [pytest.param(each, JSON, id=f"JSON: {name}") for name, each in NO_JSON.items()]
    + [pytest.param(each, MSGPACK, id=f"msgpack: {name}") for name, each in NO_MSGPACK.items()],
)
async def test_what_is_no_document_is_a_problem_of_its_sender(
    body: bytes, media: Any, make_client: MakeClient, script: Script
) -> None:
    status, says = await post(make_client(), body, media)
    assert status == 400
    assert says.startswith(("the body is not", "something follows"))
    assert script.asked == []


@pytest.mark.parametrize("media", [JSON, MSGPACK], ids=lambda each: each.name)
@pytest.mark.parametrize("document", NO_MESSAGE.values(), ids=NO_MESSAGE)
async def test_what_is_no_message_is_told_by_its_fields(
    document: Any, media: Any, make_client: MakeClient, script: Script
) -> None:
    status, says = await post(make_client(), ENCODE[media](document), media)
    assert status == 400
    assert says.startswith(("the body: ", "thread_id: ", "thread: "))
    assert "acme" not in says
    assert script.asked == []


async def test_of_many_mistakes_some_are_named(make_client: MakeClient) -> None:
    document = {**MESSAGE, **{f"x{number}": 1 for number in range(9)}}
    _, says = await post(make_client(), json.dumps(document).encode())
    assert says.endswith("; and 4 more")


async def test_of_a_key_that_stands_twice_the_last_one_is_checked_and_used(
    make_client: MakeClient, script: Script
) -> None:
    assert await post(make_client(), b'{"thread_id": "other/1", "thread_id": "acme/1"}') == (200, "")
    assert script.asked == [GetTupleRequest.model_validate(MESSAGE)]


# Compression


@pytest.mark.parametrize("encoding", COMPRESS)
async def test_what_is_not_compressed_as_it_says_is_a_problem(encoding: str, make_client: MakeClient) -> None:
    client = make_client()
    good = COMPRESS[encoding](json.dumps(MESSAGE).encode())
    other = next(each for name, each in COMPRESS.items() if name != encoding)(b"{}")
    for body, says in (
        (b"", "" if encoding == "gzip" else "that says the size"),
        (good[:-1], ""),
        (good + b"x", ""),
        (good + good, "something follows"),
        (other, ""),
        (b"{}" * 20, ""),
    ):
        status, said = await post(client, body, content_encoding=encoding)
        # What is cut off, or followed by something, may also say another size.
        assert (status in (400, 413), says in said) == (True, True), (body, said)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "gzip,zstd"])
async def test_an_unknown_compression_is_refused(encoding: str, make_client: MakeClient) -> None:
    status, says = await post(make_client(), b"{}", content_encoding=encoding)
    wanted = "Content-Encoding must be gzip or zstd; leave it out if the body is not compressed"
    assert (status, says) == (415, wanted)


@pytest.mark.parametrize("sized", [True, False])
async def test_a_window_that_would_take_much_memory_is_refused_and_so_is_a_frame_without_its_size(
    sized: bool, make_client: MakeClient
) -> None:
    options: dict[int, int] = {
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
        zstd.CompressionParameter.content_size_flag: int(sized),
    }
    content = b" " * (9 << 20) + json.dumps(MESSAGE).encode()
    compressor = zstd.ZstdCompressor(options=options)
    if sized:
        compressor.set_pledged_input_size(len(content))
    body = compressor.compress(content) + compressor.flush()
    status, says = await post(make_client(), body, content_encoding="zstd")
    assert (status, ("too large a window" if sized else "says the size") in says) == (400, True)


# Limits


@pytest.mark.parametrize("encoding", COMPRESS)
def test_no_more_is_decompressed_than_a_body_says(encoding: str) -> None:
    bomb = COMPRESS[encoding](bytes(10**7))
    tracemalloc.start()
    try:
        with pytest.raises(ProblemError, match="not as large as it says"):
            decompressed(bomb, encoding, 4000)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("encoding", COMPRESS)
async def test_a_body_that_says_that_it_is_too_large_is_not_decompressed(
    encoding: str, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("langgraph.checkpoint.dynamodb.gateway.bodies.decompressed")
    body = COMPRESS[encoding](bytes(5000))
    status, says = await post(make_client(limits=SMALL), body, content_encoding=encoding)
    assert (status, says) == (
        413,
        "the body is over 4,000 bytes once it is decompressed; send less in one request",
    )


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(make_client: MakeClient) -> None:
    read: list[int] = []

    async def pieces() -> Any:
        for number in range(100):
            read.append(number)
            yield bytes(500)

    answer = await make_client(limits=SMALL).post(
        "/checkpoints/get-tuple",
        content=pieces(),
        headers={"content-type": JSON.name, "content-length": "50000"},
    )
    assert answer.status_code == 413
    assert "over 2,000 bytes; send less in one request" in answer.json()["detail"]
    assert len(read) <= 1


@pytest.mark.parametrize(
    ("length", "status"),
    [
        ("²", 411),
        ("-1", 411),
        ("1e3", 411),
        ("x", 411),
        ("", 411),
        ("9" * 5000, 413),
        ("1", 400),
        ("99", 400),
    ],
)
async def test_a_length_is_announced_and_holds(length: str, status: int, make_client: MakeClient) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", length.encode())]
    answer = await make_client().post(
        "/checkpoints/get-tuple", content=json.dumps(MESSAGE).encode(), headers=headers
    )
    assert answer.status_code == status


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth - 1):
        value = [value]
    return {"filter": value}


@pytest.mark.parametrize("media", [JSON, MSGPACK], ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("document", "status", "says"),
    [
        (nested(NESTING_MAX), 400, "filter: "),
        (nested(NESTING_MAX + 1), 400, "nested deeper than 32"),
        ([0] * VALUES_MAX, 413, "more than 100,000 values"),
        ([[0] * 9000] * 11, 400, "the body: "),
        ([{"": ""}] * (VALUES_MAX // 3 + 1), 413, "more than 100,000 values"),
        ({"a": [[], [], "[[[[[[", '"[{,\\', "\\", b"[[[[[[".decode()]}, 400, "a: "),
    ],
)
async def test_a_document_has_so_much_and_no_more(
    document: Any, status: int, says: str, media: Any, make_client: MakeClient, script: Script
) -> None:
    answer = await post(make_client(), ENCODE[media](document), media, "list")
    assert (answer[0], says in answer[1]) == (status, True), answer
    assert script.asked == []


async def test_a_text_full_of_escapes_is_not_decoded(make_client: MakeClient) -> None:
    body = json.dumps({**MESSAGE, "x": "\n" * MARKS_MAX}).encode()
    status, says = await post(make_client(), body)
    assert (status, "more than 1,000,000 marks and escapes" in says) == (413, True)


EVERY_KIND: list[Any] = [None, True, 0, -1, 127, 128, 2**16, 2**32, 2**63, -33, -200, -40_000, -(2**40), 1.5]
EVERY_KIND += ["", "a", "a" * 32, "a" * 300, "a" * 70_000, b"", b"a" * 300, b"a" * 70_000]
EVERY_KIND += [[], [1] * 20, [1] * 70_000, {}, {str(number): 1 for number in range(20)}]


@pytest.mark.parametrize("value", EVERY_KIND, ids=range(len(EVERY_KIND)))
async def test_every_kind_of_msgpack_is_passed_over_by_its_length(
    value: Any, make_client: MakeClient
) -> None:
    # What stands behind the value is only found where the value ends.
    body = ormsgpack.packb({"have": [value, "the last one"], "thread_id": 7})
    status, says = await post(make_client(), body, MSGPACK)
    assert status == 400
    assert "have.1: " in says
    assert (await post(make_client(), body + b"\xc0", MSGPACK))[1].startswith("something follows")


async def test_large_bodies_are_read_in_a_thread_and_mean_the_same(
    make_client: MakeClient, script: Script
) -> None:
    writes = [[f"channel {each}", {"type": "bytes", "data": bytes(10_000)}] for each in range(20)]
    body = ormsgpack.packb({**MESSAGE, "checkpoint_id": "1", "task_id": "task", "writes": writes})
    for sent, encoding in ((body, ""), (zlib.compress(body, wbits=31), "gzip")):
        answer = await post(make_client(), sent, MSGPACK, "put-writes", content_encoding=encoding)
        assert answer == (200, "")
    asked = [[[channel, value.model_dump()] for channel, value in each.writes] for each in script.asked]
    assert asked == [writes] * 2
