"""The log of a build as Cloud Logging has it: each line once, also of entries that come late."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.api_core.exceptions import PermissionDenied, RetryError
from google.auth.exceptions import RefreshError

from vertex_training.errors import OperatorError
from vertex_training_cli.images.engines.build_logs import BuildLog

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FILTER = 'resource.type="build" AND resource.labels.build_id="7"'


def entry(id_: str, text: str, seconds: float = 0) -> Any:
    time = BEGAN + timedelta(seconds=seconds)
    return SimpleNamespace(insert_id=id_, text_payload=text, timestamp=time)


class Logging:
    """Entries, read by read; an exception is raised after the entries before it."""

    def __init__(self, *reads: list[Any]) -> None:
        self.reads, self.asked = list(reads), list[dict[str, Any]]()

    def list_log_entries(self, request: dict[str, Any], timeout: float) -> Iterator[Any]:
        self.asked.append({**request, "timeout": timeout})
        for each in self.reads.pop(0):
            if isinstance(each, Exception):
                raise each
            yield each


def log_of(*reads: list[Any]) -> tuple[Logging, BuildLog]:
    client = Logging(*reads)
    return client, BuildLog(cast(Any, client), "acme", "7")


def test_lines_are_those_of_entries_that_are_new() -> None:
    client, log = log_of(
        [],
        [entry("a", "one\ntwo\n"), entry("b", "", 1)],
        [entry("a", "one\ntwo\n"), entry("c", "late", 0.5), entry("d", "three\n\n", 20)],
        [entry("d", "three\n\n", 20), entry("e", "four", 11)],
    )
    assert [list(log.new_lines()) for _ in range(4)] == [
        [], ["one", "two", ""], ["late", "three"], ["four"],
    ]  # fmt: skip
    whole = {
        "resource_names": ["projects/acme"], "filter": FILTER, "order_by": "timestamp asc",
        "page_size": 1000, "timeout": 20.0,
    }  # fmt: skip
    assert client.asked == [
        whole,
        whole,
        # ten seconds before the newest entry: others may arrive late
        whole | {"filter": f'{FILTER} AND timestamp>="2026-01-02T03:03:56+00:00"'},
        whole | {"filter": f'{FILTER} AND timestamp>="2026-01-02T03:04:15+00:00"'},
    ]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionDenied("denied"), "denied"),
        (RetryError("too long", cause=None), "too long"),
        (RefreshError("no credentials"), "no credentials"),
    ],
)
def test_a_log_that_cannot_be_read_is_told_with_the_answer(error: Exception, told: str) -> None:
    _, log = log_of([entry("a", "one"), error], [entry("a", "one"), entry("b", "two")])
    lines = log.new_lines()
    assert next(lines) == "one"
    with pytest.raises(OperatorError) as refused:
        next(lines)
    assert told in str(refused.value)
    assert list(log.new_lines()) == ["two"]
