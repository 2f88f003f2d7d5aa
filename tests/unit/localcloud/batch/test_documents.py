"""Documents that nobody here wrote: each is taken or refused, and none is an internal error."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localgcp.apis.messages import batch_job
from localgcp.batch import checks
from localgcp.batch.service import _complete
from localgcp.errors import ApiError
from tests.contract import description

FORM = description.schema("batch.v1", "Job")
TEXTS = st.sampled_from(["", "a", "gs://x", "/gcs/b", "..", "5s", "-1s", "\0", "ä" * 70, "{}"])


def values(field: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
    if "$ref" in field:
        return documents(description.schema("batch.v1", field["$ref"]), depth - 1)
    if "enum" in field:
        return st.sampled_from(field["enum"])
    match field["type"], field.get("format"):
        case "array", _:
            return st.lists(values(field["items"], depth), max_size=2)
        case "object", _:
            inner = field.get("additionalProperties", {"type": "string"})
            return st.dictionaries(TEXTS, values(inner, depth), max_size=2)
        case "boolean", _:
            return st.booleans()
        case "integer", _:
            return st.sampled_from([0, 1, -1, 7, 2**31 - 1])
        case _, "int64":
            return st.sampled_from(["0", "1", "-1", "100000", str(2**63 - 1)])
        case _, "google-duration":
            return st.sampled_from(["0s", "1.5s", "-3s", "315576000000s"])
        case _, "google-datetime":
            return st.just("2026-11-24T10:00:00Z")
        case _:
            return TEXTS


def documents(form: dict[str, Any], depth: int) -> st.SearchStrategy[dict[str, Any]]:
    if depth < 0:
        return st.just({})
    fields = {key: values(each, depth) for key, each in form.get("properties", {}).items()}
    chosen = st.lists(st.sampled_from(sorted(fields)), unique=True) if fields else st.just([])
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: fields[key] for key in keys}))


def fitting(document: dict[str, Any]) -> dict[str, Any]:
    """The document with one group whose first runnable is right."""
    group = next(iter(document.get("taskGroups") or [{}]))
    spec = {**group.get("taskSpec", {}), "runnables": [{"script": {"text": "true"}}]}
    return {**document, "taskGroups": [{**group, "taskSpec": spec}]}


ANY = documents(FORM, 5)


@pytest.mark.timeout(300)
@settings(max_examples=200, deadline=None, suppress_health_check=[*HealthCheck])
@given(ANY | ANY.map(fitting))
def test_any_document_is_taken_or_refused(document: dict[str, Any]) -> None:
    message = batch_job.Job.pb(batch_job.Job())
    try:
        json_format.ParseDict(document, message)
    except json_format.ParseError:
        return  # fields of the description that the client lacks; two of a oneof
    body = json_format.MessageToDict(message)
    try:
        checks.check_job(body, "us-central1")
    except ApiError:
        return
    _complete(body, "projects/1/locations/us-central1/jobs/a", "local-training")
    json_format.ParseDict(body, batch_job.Job.pb(batch_job.Job()))
