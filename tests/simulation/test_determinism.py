"""A seed means one run, in every process: sets of strings and bytes have another order in each."""

import os
import subprocess
import sys

import pytest

_SCHEDULES = 40
_PROGRAM = f"""
import pytest
from tests.simulation.random_runs import random_run
from tests.simulation.schedule import Choices
from tests.simulation.world import use_small_limits

use_small_limits(pytest.MonkeyPatch())
for seed in range({_SCHEDULES}):
    print("\\n".join(random_run(Choices(seed=seed)).simulator.log))
"""


@pytest.mark.search
def test_a_schedule_is_the_same_in_every_process() -> None:
    """Run schedules in two processes that hash differently."""
    logs = [
        subprocess.run(  # noqa: S603 - our own program.
            (sys.executable, "-c", _PROGRAM),
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert len(logs[0].splitlines()) > 50 * _SCHEDULES
    assert logs[0] == logs[1]
