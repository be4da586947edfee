"""The exceptions that the saver raises itself.

Each message names what is wrong and what to do about it. Transient errors (throttling, failures on AWS's side,
endpoints that do not respond) are retried for `retry_seconds`. If they do not pass, every method may raise
`CheckpointerUnavailableError`. Every method that reads the table may raise `CheckpointCorruptionError`,
`CheckpointFormatError` or `CheckpointerConfigurationError`.
"""


class CheckpointerError(Exception):
    """The base class of this package's errors.

    Raised itself if a gateway does not answer. Call again: every method may be repeated.
    """

    code: str | None = None
    """AWS's code of the request that failed, such as `ThrottlingException`; `None` if it got no response."""
    attempts: int | None = None
    """How often the request was sent before the call gave up; `None` if it is not why the call failed."""
    request_id: str | None = None
    """AWS's id of the last attempt, or the gateway's id of the request; `None` if there is none."""


class CheckpointerUnavailableError(CheckpointerError):
    """DynamoDB throttled, failed or did not answer for all of `retry_seconds`; botocore's error is the `__cause__`.

    Call again later: every method may be repeated. The message names the cause, the attempts and the time they took.
    """


class CheckpointerInputError(CheckpointerError, ValueError):
    """An argument cannot be used: a missing id, a key over DynamoDB's limit, an unknown strategy.

    Correct the argument that the message names. Nothing was stored.
    """


class CheckpointerConfigurationError(CheckpointerError):
    """The table, the credentials, their rights, the region, the cipher or the serializer does not fit.

    Run `langgraph-dynamodb doctor`, which finds what is missing and names the remedy.
    """


class CheckpointSerializationError(CheckpointerError, TypeError):
    """The serializer cannot write a value; nothing of the call was stored.

    Keep the value out of the state, or pass a `serde` that can write it. The message names the channel and
    the path of the value in it.
    """


class CheckpointNotFoundError(CheckpointerError, LookupError):
    """A checkpoint that another one needs is not in the table any more.

    Resume from a checkpoint that has a snapshot, or start a new thread.
    """


class CheckpointCorruptionError(CheckpointerError):
    """Stored data is damaged or incomplete; the message names the item.

    Copy the thread from a table restored to a point in time (`langgraph-dynamodb copy --from`), or delete it.
    """


class CheckpointFormatError(CheckpointerError):
    """An item was written by a newer release of this package than the one that reads it.

    Update the process that reads it.
    """


class ThreadBusyError(CheckpointerError):
    """Another deletion or runner holds the thread, or calls for the same thread, checkpoint or task interfered.

    Call again later, or pass `wait=` to `thread_lock`.
    """


class ThreadLockLostError(CheckpointerError):
    """A thread's lock was not renewed in time, so another runner may have continued the thread.

    Start the run again from the newest checkpoint. If a run can be frozen for long, pass a longer `ttl`.
    """


class BrokenRuleError(CheckpointerError):
    """A fault of this package: a call was about to break a rule that keeps stored data whole. It has not done so.

    Report the message. Another call may succeed.
    """


class SearchLimitError(CheckpointerError):
    """One search of the store would read more than its `search_bytes_max`.

    Search a longer namespace, or read it in pages by `order="key"` and `after`.
    """
