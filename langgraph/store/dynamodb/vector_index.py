"""Search by DynamoDB's vector index (`SearchVectors`), in beta here: it has not run on AWS yet.

A vector's item holds the embedding as numbers, and the path of its namespace to each depth, by which the index filters.
The index is eventually consistent, and one search returns at most 100 vectors. It knows no key condition, so no policy
can keep tenants apart in it, and its numbers are not encrypted.

Source: Amazon DynamoDB Developer Guide, "Vector search".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.dynamodb._format.items import partition_key
from langgraph.checkpoint.dynamodb._format.labels import label_path
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb._runtime.failures import error_code
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError
from langgraph.store.dynamodb.keys import Address, is_vector_under, parse_vector
from langgraph.store.dynamodb.reads import LoadedMemory
from langgraph.store.dynamodb.search import Budget, Search
from langgraph.store.dynamodb.similarity import Candidates, Distance, NewVector, best_scores
from langgraph.store.dynamodb.storage import StoreStorage

INDEX = "memories-index"
EMBEDDING = "embedding"
# A vector index has at most 18 filter attributes. Labels below these are compared here.
DEPTHS = tuple(f"path_{depth}" for depth in range(1, 9))
# The most vectors that one search returns. There are no pages.
FOUND_MAX = 100
# The first botocore that knows the request.
BOTOCORE = (1, 43, 64)
_FUNCTIONS: Mapping[Distance, str] = {
    "cosine": "COSINE", "l2": "EUCLIDEAN", "inner_product": "DOT_PRODUCT"
}  # fmt: skip


@dataclass(frozen=True)
class IndexVectors:
    """Vectors that DynamoDB compares, by an index of so many dimensions."""

    dims: int
    distance: Distance

    def pack(self, embedding: Sequence[float], address: Address) -> NewVector:
        """Return an embedding as it is stored."""
        paths = {
            name: {"S": label_path(address.namespace[:depth])}
            for depth, name in enumerate(DEPTHS, start=1)
            if depth <= len(address.namespace)
        }
        return NewVector(attributes={EMBEDDING: {"L": _numbers(embedding)}, **paths})

    def definition(self) -> dict[str, Any]:
        """Return the index as `UpdateTable` creates it."""
        return {
            "IndexName": INDEX,
            "VectorAttribute": {"AttributeName": EMBEDDING},
            "SearchSchema": [
                {"AttributeName": name, "SearchSchemaElementType": "INLINE_FILTER"} for name in DEPTHS
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
            "Dimensions": self.dims,
            "DistanceFunction": _FUNCTIONS[self.distance],
        }

    def candidates(
        self, storage: StoreStorage, wanted: Search, query: Sequence[float], budget: Budget
    ) -> Op[Candidates]:
        """Find the most similar vectors, by one request."""
        namespace, params = wanted.namespace, dict[str, Any]()
        if namespace:
            depth = min(len(namespace), len(DEPTHS))
            params = {
                "SearchConditionExpression": "#path = :path",
                "ExpressionAttributeNames": {"#path": DEPTHS[depth - 1]},
                "ExpressionAttributeValues": {":path": {"S": label_path(namespace[:depth])}},
            }
        params |= {
            "TableName": storage.table.name,
            "IndexName": INDEX,
            "SearchVector": _numbers(query),
            "TopK": FOUND_MAX,
            "ProjectionExpression": f"{PARTITION_KEY}, {SORT_KEY}",
        }
        outcomes = yield (Call("search_vectors", params),)
        if error_code(outcomes[0]) in ("ResourceNotFoundException", "ValidationException"):
            # The index is the likely reason, and the check says what to do about it.
            yield from check_index(storage.table, self)
        response = storage.table.checked(outcomes[0])
        found = [(each["Item"], each["Score"]) for each in response["SearchResults"]]
        budget.take(sum(item_bytes(item) for item, _ in found))
        scored = []
        for item, distance in found:
            if len(namespace) > len(DEPTHS) and not is_vector_under(item, namespace):
                continue
            sk, revision = parse_vector(item)
            scored.append(((partition_key(item), sk), revision, self._score(distance)))
        return Candidates(best_scores(scored), FOUND_MAX if len(found) >= FOUND_MAX else None)

    def score_again(
        self, storage: StoreStorage, loaded: LoadedMemory, query: Sequence[float]
    ) -> Op[float | None]:
        """The index lags behind: until it has the new value, the memory has no score."""
        del storage, loaded, query
        yield from ()
        return None

    def _score(self, distance: float) -> float:
        if self.distance == "cosine":
            return 1.0 - distance
        return -distance if self.distance == "l2" else distance


def _numbers(embedding: Sequence[float]) -> list[dict[str, str]]:
    """Return an embedding as a list of DynamoDB's numbers. The index keeps 32-bit floats."""
    single = struct.Struct("<f")
    return [{"N": f"{single.unpack(single.pack(each))[0]:.8g}"} for each in embedding]


def check_index(table: Table, vectors: IndexVectors) -> Op[None]:
    """Raise if the table's vector index is missing, is not ready, or differs.

    Raises:
        CheckpointerConfigurationError: The message has the command that adds the index.
    """
    outcomes = yield (Call("describe_table", {"TableName": table.name}),)
    if error_code(outcomes[0]) == "ResourceNotFoundException":
        description: Mapping[str, Any] = {}
    else:
        description = table.checked(outcomes[0])["Table"]
    problem = index_problem(table.name, description, vectors)
    if problem is not None:
        raise CheckpointerConfigurationError(problem)


def index_problem(table_name: str, description: Mapping[str, Any], vectors: IndexVectors) -> str | None:
    """Tell why a table cannot be searched by its vector index; `None` if it can.

    Args:
        table_name: The table's name.
        description: The table as DescribeTable returns it.
        vectors: The index that the store expects.
    """
    exact = 'or leave "search" out of index, to compare vectors exactly'
    if description.get("BillingModeSummary", {}).get("BillingMode") != "PAY_PER_REQUEST":
        return (
            f"table {table_name} has provisioned capacity, and vector indexes are for on-demand tables only;"
            f" change its billing mode, {exact}"
        )
    wanted = vectors.definition()
    for index in description.get("VectorIndexes", []):
        if index["IndexName"] != INDEX:
            continue
        different = [name for name in ("Dimensions", "DistanceFunction") if index.get(name) != wanted[name]]
        if different:
            name = different[0]
            return (
                f"{INDEX} of table {table_name} has {name}={index.get(name)}, not {wanted[name]}; make index of the"
                f" store the same, or delete the index and create it again: it cannot be changed"
            )
        if index.get("IndexStatus") != "ACTIVE" or index.get("Backfilling"):
            return f"{INDEX} of table {table_name} is still being built; wait until it is active, {exact}"
        return None
    return f"table {table_name} has no vector index {INDEX}; add it with `{add_command(table_name, vectors)}`, {exact}"


def add_command(table_name: str, vectors: IndexVectors) -> str:
    """Return the command of the AWS CLI that adds the index to a table."""
    import json  # noqa: PLC0415 - for a message only.

    updates = json.dumps([{"Create": vectors.definition()}], separators=(",", ":"))
    return f"aws dynamodb update-table --table-name {table_name} --vector-index-updates '{updates}'"
