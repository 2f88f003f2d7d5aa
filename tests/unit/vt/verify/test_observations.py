"""What a run showed, without what is a project's own: shapes, states, codes, seconds."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training_cli.verify.observations import (
    EventReader,
    job_aspects,
    normaliser,
    shape,
)

PLAIN = normaliser({"acme": "PROJECT"})


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ("x", {": text"}),
        (3, {": number"}),
        (2.5, {": number"}),
        (None, set()),
        ({"pools": [{"n": 1}, {"m": True}]}, {"pools[].n: number", "pools[].m: bool"}),
        # keys of labels are the user's
        # notes of plugins to themselves
        # deeper than six fields are not told apart
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}}, {"a.b.c.d.e.f: map"}),
    ],
)  # fmt: skip
def test_a_shape_has_the_fields_of_a_document_with_their_kinds(
    value: Any, fields: set[str]
) -> None:
    assert shape(value) == fields


def done(op: str, type_: str, outputs: Any = None, *, failed: bool = False) -> dict[str, Any]:
    kind = "resOpFailedEvent" if failed else "resOutputsEvent"
    new = None if outputs is None else {"outputs": outputs}
    return {kind: {"metadata": {"op": op, "type": type_, "new": new}}}


def said(message: str, severity: str = "error", **more: Any) -> dict[str, Any]:
    return {"diagnosticEvent": {"severity": severity, "message": message, **more}}


def test_a_command_shows_what_it_did_to_each_type() -> None:
    reader = EventReader(PLAIN)
    for event in (
        done("create", "a:b:C", {"name": "x"}),
        done("same", "a:b:C", {"size": 1}),
        done("create", "a:b:D", failed=True),
        done("same", "a:b:E"),
        done("create", "pulumi:pulumi:Stack", {"x": 1}),
        done("create", "pulumi:providers:gcp", {"x": 1}),
        done("create", "vertextraining:storage:Storage", {"x": 1}),
        {"preludeEvent": {}},
    ):
        reader.add(event)
    assert reader.resources == {
        "a:b:C": {"operations": ["create", "same"], "outputs": ["name: text", "size: number"]},
        "a:b:D": {"operations": ["create failed"], "outputs": []},
        "a:b:E": {"operations": ["same"], "outputs": []},
    }
    assert reader.changes == {"create a:b:C", "create a:b:D"}


def test_a_command_shows_its_errors_and_warnings_once() -> None:
    reader = EventReader(PLAIN)
    for event in (
        said("wrong"),
        said("wrong"),
        said("odd", "warning"),
        said("note", "info"),
        said("more", "info#err"),
        said("passing", ephemeral=True),
        said("using pulumi-language-python"),
        said(""),
        {"errorEvent": {"error": "Error 403: no"}},
    ):
        reader.add(event)
    assert reader.messages == {"errors": ["wrong", "403: Error 403: no"], "warnings": ["odd"]}


TIMES = {
    "createTime": "2026-11-26T10:00:00Z",
    "startTime": "2026-11-26T10:01:30.04Z",
    "endTime": "2026-11-26T10:02:00Z",
}


def test_the_documents_of_a_job_show_states_in_their_order_and_seconds() -> None:
    polled = [
        {"state": "JOB_STATE_QUEUED"},
        {"state": "JOB_STATE_QUEUED"},
        {"state": "JOB_STATE_RUNNING", "name": "x"},
        {"state": "JOB_STATE_QUEUED"},
        {"state": "JOB_STATE_FAILED", **TIMES, "error": {"message": "Error 400: bad"}},
    ]
    assert job_aspects(polled, PLAIN) == {
        "states": ["QUEUED", "RUNNING", "QUEUED", "FAILED"],
        "fields": ["createTime: text", "endTime: text", "error.message: text", "name: text",
                   "startTime: text", "state: text"],
        "errors": ["400: Error 400: bad"],
        "seconds until it ran": 90.0,
        "seconds that it ran": 30.0,
    }  # fmt: skip
