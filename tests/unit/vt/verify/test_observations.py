"""What a run showed, without what is a project's own: shapes, states, codes, seconds."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training_cli.verify.observations import (
    EventReader,
    error_text,
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
        (True, {": bool"}),
        (0, {": number"}),
        (False, {": bool"}),
        (None, set()),
        ("", set()),
        ([], set()),
        ({}, set()),
        ({"a": None, "b": [], "c": {"d": ""}}, set()),
        ({"a": {"b": [1, "x"]}}, {"a.b[]: number", "a.b[]: text"}),
        ({"pools": [{"n": 1}, {"m": True}]}, {"pools[].n: number", "pools[].m: bool"}),
        # keys of labels are the user's
        ({"labels": {"team": "ml"}}, {"labels: map"}),
        ({"x": {"userLabels": {"team": "ml"}}}, {"x.userLabels: map"}),
        ({"metadata": {"a": 1}, "annotations": [{"a": 1}]},
         {"metadata: map", "annotations[]: map"}),
        # notes of plugins to themselves
        ({"__defaults": [1], "a": 1}, {"a: number"}),
        # deeper than six fields are not told apart
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}}, {"a.b.c.d.e.f: map"}),
    ],
)  # fmt: skip
def test_a_shape_has_the_fields_of_a_document_with_their_kinds(
    value: Any, fields: set[str]
) -> None:
    assert shape(value) == fields


def test_names_of_a_project_and_ids_are_replaced_as_words_the_longest_first() -> None:
    normalise = normaliser({"acme": "ORG", "acme-ml": "PROJECT", "": "NOTHING"})
    text = "acme-ml acme of acmes in job 12345 at 0a1b2c3d4e but 123 and deadbeef"
    assert normalise(text) == "PROJECT ORG of acmes in job N at N but 123 and deadbeef"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("it  broke\n here", "it broke here"),
        ("googleapi: Error 403: no", "403: googleapi: Error 403: no"),
        ("Error code 429, quota", "429: Error code 429, quota"),
        ("500 Internal", "500: 500 Internal"),
        ("rpc NOT_FOUND and ABORTED", "ABORTED, NOT_FOUND: rpc NOT_FOUND and ABORTED"),
        ("Error 200: fine", "Error 200: fine"),
        ("x" * 160, "x" * 160),
        ("x" * 161, "x" * 159 + "…"),
    ],
)
def test_an_error_is_its_codes_and_its_first_words(text: str, line: str) -> None:
    assert error_text(text, PLAIN) == line


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


@pytest.mark.parametrize(
    ("document", "states", "seconds"),
    [
        # it ran before anybody looked
        ({"state": "JOB_STATE_RUNNING", "startTime": TIMES["startTime"]}, ["PENDING", "RUNNING"],
         {}),
        ({"state": "JOB_STATE_PENDING", "startTime": TIMES["startTime"]}, ["PENDING"], {}),
        ({"state": "JOB_STATE_FAILED", "createTime": TIMES["createTime"],
          "endTime": TIMES["endTime"]}, ["FAILED"], {}),
        ({"createTime": TIMES["createTime"]}, [""], {}),
        ({"state": "JOB_STATE_SUCCEEDED", **TIMES}, ["PENDING", "SUCCEEDED"],
         {"seconds until it ran": 90.0, "seconds that it ran": 30.0}),
    ],
)  # fmt: skip
def test_what_no_poll_saw_is_not_made_up(
    document: dict[str, str], states: list[str], seconds: dict[str, float]
) -> None:
    found = job_aspects([document], PLAIN)
    assert found.pop("states") == states
    assert len(found.pop("fields")) == len(document)
    assert found == seconds
