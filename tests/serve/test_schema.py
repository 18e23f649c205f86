"""Whatever the schema allows, and much that it does not: no answer is a failure of ours."""

from __future__ import annotations

import contextlib
import json

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode
from small import chatting, serving, translating

SETTINGS = settings(
    max_examples=13,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)


@pytest.fixture(scope="module")
def schema():
    with serving({"chatter": chatting(), "translator": translating()}) as made:
        yield schemathesis.openapi.from_url(f"{made.url}/openapi.json")


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.proof
def test_no_request_breaks_the_server(schema, mode):
    seen: set[tuple[str, int]] = set()
    for found in schema.get_all_operations():
        operation = found.ok()

        @SETTINGS
        @given(case=operation.as_strategy(generation_mode=mode))
        def fulfils(case):
            response = case.call()
            seen.add((case.operation.path, response.status_code))
            assert response.status_code < 500, response.text
            if response.status_code >= 400:
                assert set(json.loads(response.content)["error"]) == {"message", "type", "param", "code"}
                assert len(response.content) < 2000

        with contextlib.suppress(Unsatisfiable):  # of a route that takes nothing, nothing can be wrong
            fulfils()
    assert len({path for path, _ in seen}) >= 9, "every route that takes anything was asked"


def test_the_schema_names_every_route(schema):
    paths = set(schema.raw_schema["paths"])
    assert {"/v1/completions", "/v1/chat/completions", "/v1/translate", "/v1/predict", "/v1/inspect"} <= paths
    assert "/v1/inspect/{id}/map" in paths
