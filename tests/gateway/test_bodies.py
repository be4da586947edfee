"""Bodies: JSON, compressed and not, and what is said of what is none, too large or too deep."""

import base64
import gzip
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._format.compression import zstd
from langgraph.checkpoint.dynamodb.gateway import Limits, bodies, call, problems
from tests.gateway.conftest import MakeClient, Script, found_bytes

MESSAGE = {"thread_id": "acme/1"}
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd.compress}
JSON = "application/json"
SMALL = Limits(body_bytes_max=2000, decompressed_bytes_max=4000)


async def post(client: Any, body: bytes, path: str = "get-tuple", **headers: str) -> tuple[int, str]:
    """Send a body; return the status, and what is said of a problem."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await client.post(f"/checkpoints/{path}", content=body, headers={"content-type": JSON, **given})
    return answer.status_code, answer.json().get("detail", "") if answer.status_code != 200 else ""


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "identity", ""])
async def test_a_body_may_be_compressed(encoding: str, make_client: MakeClient, script: Script) -> None:
    body = COMPRESS.get(encoding, bytes)(json.dumps(MESSAGE).encode())
    assert await post(make_client(), body, content_encoding=encoding) == (200, "")
    assert [each.thread_id for each in script.asked] == ["acme/1"]


@pytest.mark.parametrize("sent", ["-_-_MTIzNDU2NzgxMjM0NQ==", "+/+/MTIzNDU2NzgxMjM0NQ"])
async def test_bytes_are_base64_of_either_alphabet(
    sent: str, make_client: MakeClient, script: Script
) -> None:
    assert await post(make_client(), json.dumps({**MESSAGE, "have": [sent]}).encode()) == (200, "")
    assert [each.have for each in script.asked] == [(b"\xfb\xff\xbf1234567812345",)]
    status, says = await post(make_client(), json.dumps({**MESSAGE, "have": ["MTIz!"]}).encode())
    assert (status, says.startswith("have.0: Data should be valid base64")) == (400, True)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
async def test_a_number_that_json_has_not_is_refused(
    number: str, make_client: MakeClient, script: Script
) -> None:
    status, says = await post(make_client(), b'{"filter": {"a": [%s]}}' % number.encode(), "list")
    assert (status, says.startswith("filter: ")) == (400, True)
    assert script.asked == []


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
    size: int, accept: str, encoding: str | None, make_client: MakeClient, script: Script
) -> None:
    script.answer = found_bytes(bytes(size))
    headers = {"content-type": JSON, "accept-encoding": accept}
    async with make_client().stream(
        "POST", "/checkpoints/get-tuple", content=json.dumps(MESSAGE).encode(), headers=headers
    ) as answer:
        raw = b"".join([each async for each in answer.aiter_raw()])
    assert answer.headers["content-type"] == JSON
    chosen = encoding if size > 1000 else None
    assert answer.headers.get("content-encoding") == chosen
    expand: Any = {None: bytes, "gzip": gzip.decompress, "zstd": zstd.decompress}[chosen]
    value = json.loads(expand(raw))["checkpoint"]["values"]["x"]
    assert base64.b64decode(value["data"]) == bytes(size)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
        ("application/json; charset=latin-1", 415),
        ("text/plain", 415),
        ("", 415),
    ],
)
async def test_media_types_are_ours(content_type: str, status: int, make_client: MakeClient) -> None:
    headers = {"content-type": content_type}
    answer = await make_client().post(
        "/checkpoints/get-tuple", content=json.dumps(MESSAGE).encode(), headers=headers
    )
    assert answer.status_code == status
    if status == 200:
        assert answer.headers["content-type"] == JSON
    else:
        assert JSON in answer.headers["accept-post"]


# What is none


NO_REQUEST = {
    "nothing": b"",
    "half": b'{"thread_id": "acme',
    "two": b'{"thread_id": "a"} {"thread_id": "b"}',
    "half a pair": b'{"thread_id": "\\ud800"}',
    "half a pair as bytes": b'{"thread_id": "\xed\xa0\x80"}',
    "no UTF-8": b'{"thread_id": "\xff"}',
    "a huge number": b'{"thread_id": ' + b"9" * 5000 + b"}",
    "UTF-16": json.dumps(MESSAGE).encode("utf-16"),
    "quotes": b'"\\"' * 600,
    "a text": b'"acme/1"',
    "a list": b'[{"thread_id": "acme/1"}]',
    "null": b"null",
    "a number": b"7",
    "another field": b'{"thread_id": "acme/1", "thread": "acme/1"}',
    "another type": b'{"thread_id": 7}',
    "an empty id": b'{"thread_id": ""}',
    "nothing of it": b"{}",
}


@pytest.mark.parametrize("body", NO_REQUEST.values(), ids=NO_REQUEST)
async def test_what_is_no_request_is_a_problem_of_its_sender_told_by_its_fields(
    body: bytes, make_client: MakeClient, script: Script
) -> None:
    status, says = await post(make_client(), body)
    assert status == 400
    assert says.startswith(("the body: ", "the body closes", "thread_id: ", "thread: "))
    assert len(says) < 300
    assert "acme" not in says
    assert script.asked == []


@pytest.mark.parametrize(
    ("count", "end"), [(9, "; and 4 more"), (1001, "has 1,001 mistakes; compare it with /openapi.json")]
)
async def test_of_many_mistakes_some_are_named(make_client: MakeClient, count: int, end: str) -> None:
    document = {**MESSAGE, **{f"x{number}": 1 for number in range(count)}}
    _, says = await post(make_client(), json.dumps(document).encode())
    assert says.endswith(end)


async def test_of_a_key_that_stands_twice_the_last_one_is_checked_and_used(
    make_client: MakeClient, script: Script
) -> None:
    assert await post(make_client(), b'{"thread_id": "other/1", "thread_id": "acme/1"}') == (200, "")
    assert [each.thread_id for each in script.asked] == ["acme/1"]


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
        with pytest.raises(problems.ProblemError, match="not as large as it says"):
            bodies.decompressed(bomb, encoding, 4000)
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


@pytest.mark.parametrize(
    ("length", "status", "says"),
    [
        *((each, 411, "send the body with its Content-Length") for each in ("²", "-1", "1e3", "x", "")),
        # It is refused before it is read, of which the length would be another one.
        *((each, 413, "over 2,000 bytes; send less in one request") for each in ("2001", "9" * 5000)),
        *((each, 400, "not as long as its Content-Length says") for each in ("1", "99")),
    ],
)
async def test_a_length_is_announced_and_holds(
    length: str, status: int, says: str, make_client: MakeClient
) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", length.encode())]
    answer = await make_client(limits=SMALL).post(
        "/checkpoints/get-tuple", content=json.dumps(MESSAGE).encode(), headers=headers
    )
    assert (answer.status_code, says in answer.json()["detail"]) == (status, True)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth - 1):
        value = [value]
    return {"filter": value}


@pytest.mark.parametrize(
    ("document", "status", "says"),
    [
        (nested(call.NESTING_MAX), 400, "filter: "),
        (nested(call.NESTING_MAX + 1), 400, "nested deeper than 32"),
        ([0] * call.VALUES_MAX, 413, "more than 100,000 values"),
        ([[0] * 9000] * 11, 400, "the body: "),
        ([{"": ""}] * (call.VALUES_MAX // 3 + 1), 413, "more than 100,000 values"),
        ({"a": [[], [], "[[[[[[", '"[{,\\', "\\", b"[[[[[[".decode()]}, 400, "a: "),
    ],
)
async def test_a_document_has_so_much_and_no_more(
    document: Any, status: int, says: str, make_client: MakeClient, script: Script
) -> None:
    answer = await post(make_client(), json.dumps(document).encode(), "list")
    assert (answer[0], says in answer[1]) == (status, True), answer
    assert script.asked == []


async def test_a_text_full_of_escapes_is_not_decoded(make_client: MakeClient) -> None:
    body = json.dumps({**MESSAGE, "x": "\n" * call.MARKS_MAX}).encode()
    status, says = await post(make_client(), body)
    assert (status, "more than 1,000,000 marks and escapes" in says) == (413, True)
