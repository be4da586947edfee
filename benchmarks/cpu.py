"""The CPU time of a step with the saver, beside the same requests by a boto3 client with defaults."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import empty_checkpoint

from benchmarks.contestants import OURS, new_bench, session_of
from benchmarks.conversation import config_of
from benchmarks.report import Bound, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from botocore.model import OperationModel
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from tools.engine import Engine

_BLOCKS, _STEPS = 12, 50
_RATIO_MAX = 1.12


def run(engine: Engine) -> Section:
    """Store steps of a counter in blocks, and send after each block the same requests again, to another table."""
    with new_bench(OURS, engine) as bench, new_bench(OURS, engine) as other:
        session = session_of(engine)
        sent: list[tuple[str, dict[str, Any]]] = []

        def note(params: dict[str, Any], model: OperationModel, **_: object) -> None:
            sent.append((model.name, {**params, "TableName": other.table_name}))

        session.events.register("before-parameter-build.dynamodb", note)
        saver = OURS.open(
            bench.table_name,
            session=session,
            endpoint_url=engine.endpoint_url,
            region_name=engine.region_name,
        )
        plain: Any = session_of(engine).client("dynamodb", endpoint_url=engine.endpoint_url)
        methods = {
            plain.meta.method_to_api_mapping[each]: getattr(plain, each)
            for each in ("put_item", "get_item", "update_item", "query")
        }

        def again() -> None:
            for operation, params in sent:
                methods[operation](**params)

        ours, boto3 = list[float](), list[float]()
        steps = _steps(saver)
        for _ in range(_BLOCKS):
            sent.clear()
            ours.append(_cpu_ms(lambda: [next(steps) for _ in range(_STEPS)]))
            boto3.append(_cpu_ms(again))
    # The least is what other programs have disturbed least.
    ratio = min(ours) / min(boto3)
    return Section({}, [Bound("CPU of a put with a put_writes, beside boto3's", ratio, _RATIO_MAX)])


def _cpu_ms(block: Callable[[], object]) -> float:
    started = time.process_time()
    block()
    return (time.process_time() - started) / _STEPS * 1_000


def _steps(saver: BaseCheckpointSaver[Any]) -> Iterator[int]:
    """Store one step of a counter after the other: its checkpoint, and the writes of a task."""
    config, number = config_of("thread"), 0
    while True:
        number += 1
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"count": number}
        checkpoint["channel_versions"] = {"count": number}
        config = saver.put(
            config, checkpoint, {"source": "loop", "step": number, "parents": {}}, {"count": number}
        )
        saver.put_writes(config, [("count", number)], f"task-{number}")
        yield number
