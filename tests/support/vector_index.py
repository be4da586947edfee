"""DynamoDB's vector index in memory, by the rules of the Developer Guide: SearchVectors over a model's items.

No engine of these tests has the index. What is not documented is not here: in particular nothing approximates, and the
index lags only as far as a test says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from tests.support.dynamodb_model import DynamoDBModel

_CONDITION = re.compile(r"(#\w+) = (:\w+)")


class VectorIndex:
    """One vector index of a table."""

    def __init__(self, model: DynamoDBModel, definition: Mapping[str, Any]) -> None:
        """Index a model's items by what `UpdateTable` was given."""
        self._model = model
        self.definition = definition
        self.status: dict[str, Any] = {"IndexStatus": "ACTIVE"}
        self.billing = "PAY_PER_REQUEST"
        self.exists = True
        self.seen: Sequence[Mapping[str, Any]] | None = None
        """The items that the index has; `None` if it lags behind by nothing."""
        self.searches: list[Mapping[str, Any]] = []

    def freeze(self) -> None:
        """Lag behind: keep what is there now."""
        self.seen = self._model.items()

    def handle(self, method: str, params: Mapping[str, Any]) -> Any:
        """Answer a request to the table."""
        if method == "search_vectors":
            return self._search(params)
        response = self._model.handle(method, params)
        if method == "describe_table":
            indexes = [{**self.definition, **self.status}] if self.exists else []
            response["Table"] |= {
                "VectorIndexes": indexes,
                "BillingModeSummary": {"BillingMode": self.billing},
            }
        return response

    def _search(self, params: Mapping[str, Any]) -> Any:
        self.searches.append(params)
        if not self.exists:
            raise _refusal("ResourceNotFoundException", "Requested resource not found")
        if not 1 <= params["TopK"] <= 100:
            raise _refusal("ValidationException", "TopK must be between 1 and 100")
        query = [float(each["N"]) for each in params["SearchVector"]]
        if len(query) != self.definition["Dimensions"]:
            raise _refusal(
                "ValidationException", "The vector has another number of dimensions than the index"
            )
        wanted = self._conditions(params)
        attribute = self.definition["VectorAttribute"]["AttributeName"]
        found: list[dict[str, Any]] = []
        for item in self._model.items() if self.seen is None else self.seen:
            vector = [float(each["N"]) for each in item.get(attribute, {}).get("L", [])]
            if len(vector) == len(query) and all(item.get(name) == value for name, value in wanted.items()):
                found.append(
                    {"Item": {name: item[name] for name in ("PK", "SK")}, "Score": self._score(query, vector)}
                )
        best = sorted(found, key=lambda each: each["Score"], reverse=self._function == "DOT_PRODUCT")
        return {"SearchResults": best[: params["TopK"]]}

    @property
    def _function(self) -> str:
        function: str = self.definition["DistanceFunction"]
        return function

    def _conditions(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that attributes must have. Only filters of the schema may be compared, by equality."""
        filters = {each["AttributeName"] for each in self.definition["SearchSchema"]}
        wanted = {}
        for name, value in _CONDITION.findall(params.get("SearchConditionExpression", "")):
            attribute = params["ExpressionAttributeNames"][name]
            if attribute not in filters:
                raise _refusal("ValidationException", f"{attribute} is not in the index's schema")
            wanted[attribute] = params["ExpressionAttributeValues"][value]
        return wanted

    def _score(self, query: Sequence[float], vector: Sequence[float]) -> float:
        product = sum(one * other for one, other in zip(query, vector, strict=True))
        if self._function == "DOT_PRODUCT":
            return product
        if self._function == "EUCLIDEAN":
            return math.dist(query, vector)
        return 1 - product / (math.hypot(*query) * math.hypot(*vector))


def _refusal(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "SearchVectors")
