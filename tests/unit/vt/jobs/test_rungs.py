"""A job on a later rung than the state has is the stack's own: neither orphaned nor drift."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training_cli.engine.values import known_ids
from vertex_training_cli.jobs import orphaned

NAME = "projects/1/locations/r/customJobs/"


def test_a_state_knows_its_resources_and_the_requests_of_its_rungs():
    outputs = {"ladder": ["first", "second"], "earlierRungs": ["edited"]}
    found = known_ids([("job-1", outputs), ("", {}), ("bucket", {"ladder": None})])
    assert found == {"job-1", "bucket", "first", "second", "edited"}


class Listed:
    """A job as lists have it."""

    def __init__(self, number: int, **labels: str) -> None:
        self.name, self.labels = f"{NAME}{number}", labels
        self.display_name, self.state = "x", SimpleNamespace(name="JOB_STATE_RUNNING")


@pytest.mark.parametrize(
    ("rung", "known", "orphans"),
    [
        ("2", {"second"}, []),
        ("2", {"first"}, ["1"]),  # of another ladder, or of one that was replaced
        ("2", {f"{NAME}1"}, []),
        ("", {"second"}, ["1"]),  # no rung: a request id in the state is not its job
    ],
)
def test_only_a_rung_of_a_ladder_in_the_state_is_known_by_its_request(
    monkeypatch: pytest.MonkeyPatch, rung: str, known: set[str], orphans: list[str]
):
    labels = {"vt-request-id": "second", "vt-job": "fell", **({"vt-rung": rung} if rung else {})}
    job: Any = Listed(1, **labels)
    monkeypatch.setattr(orphaned, "kind_of", lambda _: None)
    monkeypatch.setattr(orphaned, "labels_of", lambda each: each.labels)
    monkeypatch.setattr(orphaned.view, "title", lambda each: each.labels["vt-job"])
    jobs = SimpleNamespace(list=lambda live_only: [job], get_if_exists=lambda name: job)
    monkeypatch.setattr(orphaned, "Jobs", lambda ref: jobs)
    stack: Any = SimpleNamespace(connect_clients=lambda: None, parent="p")
    found = orphaned.find_orphaned_jobs(stack, known)
    assert [each.name.removeprefix(NAME) for each in found] == orphans
