"""A process that is forked while other threads use the gateway: the child waits for none of them."""

import os

import pytest

from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.gateway.through.conftest import MakeRemote, Serve
from tests.support.forks import imports_beside_forks, needs_fork, statuses_beside_calls
from tests.support.operations import Side, both_sides

pytestmark = [pytest.mark.engines("dynamodb-local"), *needs_fork]


@pytest.mark.search
@both_sides
def test_a_child_that_is_forked_beside_every_kind_of_call_makes_every_kind_of_call(
    make_remote: MakeRemote, side: Side
) -> None:
    assert statuses_beside_calls(make_remote(), side, 20) == {0}, "a child failed, or waits for ever"


@both_sides
def test_a_fork_waits_for_whatever_a_call_imports(serve: Serve, side: Side) -> None:
    assert imports_beside_forks(HttpCheckpointSaver, serve(), side, os.environ) == "True []"
