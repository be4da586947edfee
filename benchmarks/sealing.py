"""The cost of encrypting in the client: a cipher in `HttpCheckpointSaver`, which seals pieces, and none.

`python -m benchmarks.sealing` runs the conversation, and other workloads by their names, on DynamoDB Local.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from benchmarks.contestants import OURS
from benchmarks.raw import new_table
from benchmarks.report import table
from benchmarks.services import fleet
from benchmarks.workloads import ALL, CHAT
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tools.engine import DYNAMODB_LOCAL, find

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.meter import Tally
    from benchmarks.workloads import Workload
    from tools.engine import Engine

_KEY = bytes(range(32))
# Without a memory of sealed pieces, all bytes are new each time, as LangGraph's serializer makes them.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "readable": {},
    "sealed": {"key": _KEY},
    "new bytes each time": {"key": _KEY, "cache_bytes": 0},
}


def turns_of(
    engine: Engine, workload: Workload, *, key: bytes | None = None, **options: Any
) -> Sequence[Tally]:
    """Run a workload through a service on an empty table; return what it was charged up to each turn.

    Args:
        engine: The engine of the table.
        workload: The workload.
        key: The client's key; `None` if it does not encrypt.
        options: Keyword arguments of the client.
    """
    serde = workload.serde() if workload.serde else JsonPlusSerializer()
    if key is not None:
        serde = EncryptedSerializer.from_pycryptodome_aes(serde, key=key)
    with (
        new_table(engine, OURS) as table_name,
        fleet(engine, table_name, 1) as services,
        HttpCheckpointSaver(services.addresses[0], serde=serde, **options) as saver,
    ):
        return [services.spent().tally for _ in workload.run(saver, "thread")]


def main(names: Sequence[str]) -> None:
    """Print the write units of each workload."""
    with find(DYNAMODB_LOCAL).run() as engine:
        rows = [
            (
                name,
                *(
                    round(turns_of(engine, ALL[name], **options)[-1].write_units)
                    for options in VARIANTS.values()
                ),
            )
            for name in names
        ]
    print(table(["write units", *VARIANTS], rows))


if __name__ == "__main__":
    main(sys.argv[1:] or [CHAT.name])
