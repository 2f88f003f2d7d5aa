"""The filter of ListCustomJobs."""

from __future__ import annotations

import pytest

from localgcp.errors import FilterError
from localgcp.vertex.filters import label, parse
from localgcp.vertex.records import JobRecord, JobState


def job(**changes: object) -> JobRecord:
    values: dict[str, object] = {
        "job_id": "1", "project": "local-x", "number": "1", "region": "us-central1",
        "display_name": "titanic one", "labels": {"request-id": "abc", "team": "ml"},
        "request": {}, "state": JobState.RUNNING, "create_time": "2026-11-21T10:00:00.500000Z",
        "start_time": None, "end_time": None, "update_time": "2026-11-21T10:00:01.000000Z",
        "error_code": None, "error_message": None,
    }  # fmt: skip
    return JobRecord(**{**values, **changes})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "labels.request-id=abc",
        'labels.request-id="abc"',
        "labels.request-id:*",
        'display_name="titanic one"',
        "display_name:titanic",
        'state="JOB_STATE_RUNNING"',
        "state=JOB_STATE_RUNNING AND labels.team=ml",
        "state!=JOB_STATE_FAILED",
        "NOT state=JOB_STATE_FAILED",
        "-labels.team=web",
        'labels.team=web OR display_name="titanic one" AND labels.team=ml',
        "(labels.team=web OR labels.team=ml) AND labels.request-id=abc",
        'create_time>"2026-11-21T10:00:00Z"',
        'create_time<"2026-11-21T10:00:01Z"',
        'update_time>="2026-11-21T10:00:01+00:00"',
    ],
)
def test_a_filter_lets_the_job_pass(text: str) -> None:
    assert parse(text)(job())


@pytest.mark.parametrize(
    "text",
    [
        "labels.request-id=abd",
        "labels.other:*",
        'display_name="titanic"',
        "state=JOB_STATE_RUNNING AND labels.team=web",
        'create_time>"2026-11-21T10:00:01Z"',
        'end_time>"2020-01-01T00:00:00Z"',
    ],
)
def test_a_filter_keeps_the_job_out(text: str) -> None:
    assert not parse(text)(job())


@pytest.mark.parametrize(
    "text",
    ["state", "state=", "colour=red", "labels.a=b AND", "(state=X", 'state="open', "labels.a<b"],
)
def test_a_broken_filter_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(FilterError, match="Invalid filter"):
        parse(text)


@pytest.mark.parametrize("text", ["(" * 50_000, "NOT " * 50_000, "(" * 30 + "state=X" + ")" * 30])
def test_a_filter_that_is_nested_too_deeply_is_refused_in_short(text: str) -> None:
    with pytest.raises(FilterError, match="nested too deeply") as refused:
        parse(text)
    assert len(str(refused.value)) < 300


def test_a_filter_for_one_label_is_known_as_such_and_no_other() -> None:
    assert (
        label("labels.request-id=abc") == label('labels.request-id="abc"') == ("request-id", "abc")
    )
    others = ("", "state=abc", "labels.a:*", "labels.a!=b", "-labels.a=b", "labels.a=b OR state=c")
    assert {label(text) for text in others} == {None}
