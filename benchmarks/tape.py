"""A client that repeats what the engine answered, for measurements of the saver alone.

The saver is given the tape as its client. First everything goes to the engine and the answers are kept; then,
rewound, the tape answers the same requests itself, which takes about a microsecond. So what is left of an
operation is all that the saver does in this process, with nothing subtracted: neither botocore nor the engine.
"""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_dynamodb import DynamoDBClient


class Tape:
    """Answers by method, in the order in which they were given."""

    def __init__(self, client: DynamoDBClient) -> None:
        """Take the client whose answers are kept."""
        self._client = client
        self._answers: defaultdict[str, list[object]] = defaultdict(list)
        self._left: dict[str, deque[object]] | None = None

    def __getattr__(self, method: str) -> Callable[..., object]:
        """Return a method of the client."""
        return partial(self._keep if self._left is None else self._repeat, method)

    @property
    def as_client(self) -> DynamoDBClient:
        """Return the tape as what a saver takes."""
        return cast("DynamoDBClient", self)

    def record(self) -> None:
        """Ask the engine from now on, and keep its answers on an empty tape."""
        self._left = None
        self._answers.clear()

    def rewind(self) -> None:
        """Repeat the answers from now on, from the first."""
        self._left = {method: deque(answers) for method, answers in self._answers.items()}

    def _keep(self, method: str, **params: object) -> object:
        answer: object = getattr(self._client, method)(**params)
        self._answers[method].append(answer)
        return answer

    def _repeat(self, method: str, **_: object) -> object:
        if self._left is None:
            raise AssertionError("The tape was not rewound.")
        return self._left[method].popleft()
