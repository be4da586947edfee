"""The in-memory model and DynamoDB Local answer the same requests alike.

Everything the simulator finds rests on the model, so random requests of the kinds the package sends, and of the kinds a
mistake would send, go to both. Answers and error codes are compared.

Left out, because DynamoDB Local itself departs from what AWS documents:

- numbers that UpdateItem sets: DynamoDB Local returns them as they were sent;
- pages of a range that includes its end: one that stops exactly there has no LastEvaluatedKey in DynamoDB Local;
- an update of a key attribute whose condition fails: DynamoDB Local evaluates the condition first;
- a hash key over 2,048 bytes in a Query: DynamoDB Local answers with an empty page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb._format.schema import table_schema
from tests.support.dynamodb_model import DynamoDBModel
from tests.support.examples import percent

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

EXAMPLES = int(os.environ.get("LANGGRAPH_DYNAMODB_MODEL_EXAMPLES", percent(200)))

TABLE = "model-agreement"
SCHEMA = table_schema(TABLE)

NAMES = {
    "#a": "a",
    "#b": "b",
    "#n": "n",
    "#s": "s",
    "#pk": "PK",
    "#sk": "SK",
    "#run": "run_id",
    "#expires": "expires_at",
    "#zz": "zz",
}
VALUES: dict[str, dict[str, Any]] = {
    ":empty": {"S": ""},
    ":x": {"S": "x"},
    ":xy": {"S": "xy"},
    ":bytes": {"B": b"\x00\xff"},
    ":one": {"N": "1"},
    ":two": {"N": "2"},
    ":true": {"BOOL": True},
    ":set": {"BS": [b"x", b"y"]},
    ":some": {"BS": [b"y"]},
    ":big": {"S": "é" * 1500},
    ":bad_number": {"N": "one"},
    ":bad_set": {"SS": ["x", "x"]},
}
HASH_KEYS = ["thread#", "thread#ns", "a"]
RANGE_KEYS = ["C#1#", "C#1#W#t1", "C#10#", "C#2#", "S#abc", "T", "\uffff", "\U0001f600"]
RUNS = ["run-1", "run-2"]

Params = dict[str, Any]
Request = tuple[str, Params]


def mostly(usual: st.SearchStrategy[Any], *rare: Any) -> st.SearchStrategy[Any]:
    """Draw something rare once in a while: so seldom that most requests are right in all their parts."""
    return st.integers(0, 60).flatmap(lambda die: st.sampled_from(rare) if die == 31 else usual)


hash_values = mostly(st.sampled_from(HASH_KEYS).map(lambda key: {"S": key}), {"S": ""}, {"N": "1"})
range_values = mostly(
    st.sampled_from(RANGE_KEYS).map(lambda key: {"S": key}), {"S": ""}, {"B": b"x"}, {"S": "x" * 1025}
)
keys = mostly(
    st.fixed_dictionaries({"PK": hash_values, "SK": range_values}),
    {"PK": {"S": "a"}},
    {"PK": {"S": "a"}, "SK": {"S": "T"}, "x": {"S": "x"}},
    {"PK": {"S": "a" * 2049}, "SK": {"S": "T"}},
)
good_values = st.sampled_from([value for name, value in VALUES.items() if not name.startswith(":bad")])
attributes = st.fixed_dictionaries(
    {},
    optional={
        "a": good_values,
        "b": mostly(good_values, *(value for name, value in VALUES.items() if name.startswith(":bad"))),
        "n": st.integers(-1000, 1000).map(lambda number: {"N": str(number)}),
        "s": st.just({"BS": [b"y", b"x"]}),
        "run_id": mostly(
            st.sampled_from(RUNS).map(lambda run: {"S": run}), {"S": ""}, {"N": "1"}, {"S": "x" * 2049}
        ),
        "expires_at": st.just({"N": "1"}),
    },
)
items = st.builds(lambda key, more: {**key, **more}, keys, attributes)

names = st.sampled_from(["#a", "#b", "#n", "#s", "#run", "#expires"])
literals = mostly(
    st.sampled_from([name for name in VALUES if not name.startswith(":bad")]), ":bad_number", ":undefined"
)
sortable = mostly(st.sampled_from([":x", ":xy", ":empty", ":bytes", ":one", ":two"]), ":set", ":true")
tests = st.one_of(
    st.builds("attribute_exists({})".format, names),
    st.builds("attribute_not_exists({})".format, names),
    st.builds("{} {} {}".format, names, st.sampled_from(["=", "<", "<=", ">", ">="]), sortable),
    st.builds("{} = {}".format, names, literals),
    st.builds(
        "begins_with({}, {})".format, names, mostly(st.sampled_from([":x", ":xy", ":bytes"]), ":one", ":set")
    ),
    st.builds("{} BETWEEN {} AND {}".format, names, st.sampled_from([":empty", ":x"]), st.just(":xy")),
)
conditions = mostly(
    st.recursive(
        tests,
        lambda parts: st.one_of(
            st.builds("{} AND {}".format, parts, parts),
            st.builds("{} OR {}".format, parts, parts),
            st.builds("({})".format, parts),
        ),
        max_leaves=4,
    ),
    "",
    "attribute_exists(",
    "#a = = :x",
    "attribute_exists(#undefined)",
)
targets = mostly(names, "#pk")
sources = st.one_of(literals, st.builds("if_not_exists({}, {})".format, targets, literals))
sections = {
    "SET": st.builds("{} = {}".format, targets, sources),
    "REMOVE": targets,
    "ADD": mostly(st.sampled_from(["#s :set", "#s :some", "#zz :set"]), "#a :set", "#s :x"),
}


@st.composite
def updates(draw: st.DrawFn) -> str:
    """Draw an UpdateExpression of one to three sections."""
    chosen = draw(st.lists(st.sampled_from(sorted(sections)), min_size=1, max_size=3, unique=True))
    clauses = [
        ", ".join(draw(st.lists(sections[section], min_size=1, max_size=2, unique=True)))
        for section in chosen
    ]
    return " ".join(f"{section} {clause}" for section, clause in zip(chosen, clauses, strict=True))


range_conditions = mostly(
    st.one_of(
        st.just(""),
        st.builds(
            " AND #sk {} {}".format,
            st.sampled_from(["=", "<", "<=", ">", ">="]),
            st.sampled_from([":r1", ":r2"]),
        ),
        st.just(" AND begins_with(#sk, :prefix)"),
        st.just(" AND #sk BETWEEN :r1 AND :r2"),
    ),
    " AND attribute_exists(#sk)",
    " AND #a = :r1",
)
projections = mostly(st.sampled_from(["#a", "#sk, #pk", "#n, #s", "#b, #sk"]), "#a, #a", "", "#undefined")


def with_placeholders(draw: st.DrawFn, params: Params, own_values: Mapping[str, Any] | None = None) -> Params:
    """Add the names and values that the expressions of a request use, and sometimes one that none uses."""
    text = " ".join(value for name, value in params.items() if name.endswith("Expression"))
    known = {**VALUES, **(own_values or {})}
    names = {token: NAMES[token] for token in re.findall(r"#\w+", text) if token in NAMES}
    values = {token: known[token] for token in re.findall(r":\w+", text) if token in known}
    extra = draw(st.integers(0, 39))
    if extra == 0:
        names["#unused"] = "unused"
    if extra == 1 and values:
        values[":unused"] = {"S": "unused"}
    if names:
        params["ExpressionAttributeNames"] = names
    if values:
        params["ExpressionAttributeValues"] = values
    return params


@st.composite
def single_writes(draw: st.DrawFn) -> Request:
    """Draw a PutItem, UpdateItem or DeleteItem."""
    method = draw(st.sampled_from(["put_item", "update_item", "delete_item"]))
    params: Params = {"TableName": draw(mostly(st.just(TABLE), "no-such-table"))}
    if method == "put_item":
        params["Item"] = draw(items)
    else:
        params["Key"] = draw(keys)
    if method == "update_item":
        params["UpdateExpression"] = draw(updates())
        params["ReturnValues"] = draw(mostly(st.sampled_from(["NONE", "ALL_OLD", "ALL_NEW"]), "ALL_OLDEST"))
    if draw(st.booleans()) and "#pk" not in params.get("UpdateExpression", ""):
        params["ConditionExpression"] = draw(conditions)
        params["ReturnValuesOnConditionCheckFailure"] = draw(
            mostly(st.sampled_from(["NONE", "ALL_OLD"]), "all_old")
        )
    return method, with_placeholders(draw, params)


@st.composite
def single_reads(draw: st.DrawFn) -> Request:
    """Draw a GetItem."""
    return "get_item", {"TableName": TABLE, "Key": draw(keys), "ConsistentRead": draw(st.booleans())}


@st.composite
def queries(draw: st.DrawFn) -> Request:
    """Draw a Query of the table or of its index."""
    own = {
        ":hash": draw(hash_values),
        ":r1": draw(range_values),
        ":r2": draw(range_values),
        ":prefix": {"S": "C#1"},
    }
    params: Params = {"TableName": TABLE, "ScanIndexForward": draw(st.booleans())}
    params["ConsistentRead"] = draw(st.booleans())
    indexed = draw(st.integers(0, 3)) == 0
    if indexed:
        own[":hash"] = {"S": draw(st.sampled_from(RUNS))}
        params |= {"IndexName": "run_id-index", "ConsistentRead": draw(mostly(st.just(False), True))}
    condition = draw(range_conditions)
    params["KeyConditionExpression"] = ("#run" if indexed else "#pk") + " = :hash" + condition
    open_ended = re.search("=|BETWEEN", condition) is None
    if draw(st.booleans()) and open_ended:
        params["Limit"] = draw(st.integers(1, 5))
    if draw(st.integers(0, 2)) == 0:
        params["ProjectionExpression"] = draw(projections)
    if draw(st.integers(0, 4)) == 0 and open_ended:
        start = {
            "PK": {"S": draw(st.sampled_from(HASH_KEYS))},
            "SK": {"S": draw(st.sampled_from(RANGE_KEYS))},
        }
        params["ExclusiveStartKey"] = start | ({"run_id": own[":hash"]} if indexed else {})
    return "query", with_placeholders(draw, params, own)


@st.composite
def batches(draw: st.DrawFn) -> Request:
    """Draw a BatchGetItem or BatchWriteItem."""
    if draw(st.booleans()):
        request: Params = {
            "Keys": draw(st.lists(keys, min_size=1, max_size=4)),
            "ConsistentRead": draw(st.booleans()),
        }
        return "batch_get_item", {"RequestItems": {TABLE: request}}
    put = st.builds(lambda item: {"PutRequest": {"Item": item}}, items)
    delete = st.builds(lambda key: {"DeleteRequest": {"Key": key}}, keys)
    requests = draw(st.lists(st.one_of(put, put, delete), min_size=1, max_size=4))
    return "batch_write_item", {"RequestItems": {TABLE: requests}}


def answer_of(ask: Callable[[str, Params], Mapping[str, Any]], method: str, params: Params) -> Params:
    """Return what an engine answers, or the error it answers with, without what only a real engine knows."""
    try:
        answer = dict(ask(method, params))
    except ClientError as error:
        return {"error": error.response["Error"]["Code"], "item": error.response.get("Item")}
    answer.pop("ResponseMetadata", None)
    # Only DeleteItem of an item that is not there reports it without being asked.
    answer.pop("ConsumedCapacity", None)
    if method == "batch_get_item":
        answer["Responses"] = {table: in_any_order(found) for table, found in answer["Responses"].items()}
    return answer


def in_any_order(items: list[Params]) -> list[Params]:
    """Sort items that an engine may return in any order."""
    return sorted(items, key=lambda item: repr(sorted(item.items())))


@pytest.fixture(scope="module")
def table(client: DynamoDBClient) -> Iterator[None]:
    """Make the table that the requests name."""
    client.create_table(**SCHEMA)
    yield
    client.delete_table(TableName=TABLE)


@pytest.mark.engines("dynamodb-local")
@pytest.mark.usefixtures("table")
@seed(4)
@settings(max_examples=EXAMPLES)
@given(
    requests=st.lists(
        st.one_of(single_writes(), single_writes(), single_reads(), queries(), queries(), batches()),
        min_size=1,
        max_size=25,
    )
)
def test_the_model_answers_as_dynamodb_local_does(client: DynamoDBClient, requests: list[Request]) -> None:
    for item in client.scan(TableName=TABLE)["Items"]:
        client.delete_item(TableName=TABLE, Key={"PK": item["PK"], "SK": item["SK"]})
    model = DynamoDBModel(SCHEMA, clock=lambda: 0.0)
    for method, params in requests:
        expected = answer_of(lambda name, sent: getattr(client, name)(**sent), method, params)
        assert answer_of(model.handle, method, params) == expected, (method, params)
