"""DynamoDB Local, hurt from a seed, and graphs whose processes are killed: nothing that was acknowledged is lost.

`LANGGRAPH_DYNAMODB_CHAOS_OPERATIONS=10000` makes a soak of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.chaos.checker import check_chaos, check_emptied, check_errors, check_retries, check_stored, figures
from tests.chaos.run import ChaosRun
from tests.conftest import MakeSaver
from tests.support.checkpoints import all_items
from tests.support.examples import percent
from tests.support.seeds import VARIABLE, seed_asked_for

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

OPERATIONS_VARIABLE = "LANGGRAPH_DYNAMODB_CHAOS_OPERATIONS"
# One in which a storm comes early.
FIXED_SEED = 9


@pytest.mark.engines("dynamodb-local")
def test_nothing_acknowledged_is_lost_on_a_hurt_engine(
    engine: Engine,
    table_name: str,
    client: DynamoDBClient,
    make_saver: MakeSaver,
    tmp_path: Path,
    tell: Callable[[str], None],
) -> None:
    seed = seed_asked_for(FIXED_SEED)
    run = ChaosRun(engine, table_name, seed, int(os.environ.get(OPERATIONS_VARIABLE, percent(300))), tmp_path)
    tell(f"A run from {VARIABLE}={seed}")
    run.run()
    tell(figures(run))
    check_chaos(run)
    check_errors(run)
    check_retries(run)
    check_stored(run, make_saver())
    check_emptied(run, make_saver())
    assert all_items(client, table_name) == []
