"""A botocore that knows vector indexes takes the store's requests; one that does not is refused by the store."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from packaging.version import Version

from langgraph.store.dynamodb.keys import address_of
from langgraph.store.dynamodb.vector_index import BOTOCORE, IndexVectors
from tests.dependencies.pins import installed_version
from tests.store.test_vector_index import World


def test_the_environment_takes_the_requests_if_it_is_new_enough() -> None:
    model: Any = botocore.session.get_session().get_service_model("dynamodb")
    installed = installed_version("botocore")
    assert installed is not None
    is_known = "SearchVectors" in model.operation_names
    assert is_known == (installed >= Version(".".join(map(str, BOTOCORE))))
    world = World()
    world.found(("a", "b"), [1.0, 0.5, 1e-9])
    vectors = IndexVectors(3, "l2")
    packed = vectors.pack([1.0, 0.5, 1e-9], address_of(("a",), "k")).attributes
    assert float(packed["embedding"]["L"][2]["N"]) == pytest.approx(1e-9)
    if is_known:
        update = {"TableName": "t", "VectorIndexUpdates": [{"Create": vectors.definition()}]}
        for name, params in (("SearchVectors", world.index.searches[0]), ("UpdateTable", update)):
            report = ParamValidator().validate(params, model.operation_model(name).input_shape)
            assert not report.has_errors(), report.generate_report()
