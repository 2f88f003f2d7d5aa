import threading

import pytest

from tests.unit.infra.customjob.fakes import EDITED, REQUEST, Process, World
from vertex_training.customjob.protocol import submission
from vertex_training.customjob.protocol.refusal import ReplacedJob
from vertex_training.customjob.protocol.timing import Timing
from vertex_training.customjob.refusal_lookup import (
    COMPARES,
    RefusalLookup,
    answer_within,
    is_offline,
)
from vertex_training.errors import OperatorError

#: A job of the state, of neither request.
OLD = ReplacedJob("id0", "job-0")


@pytest.fixture
def world():
    """A world in which the job was submitted, and an edit of it would be refused."""
    world = World()
    process = Process(world)
    submission.submit(REQUEST, process, process, Timing(), process.environment())
    return world


class Connection:
    """Counts the calls of all lookups that connect by it."""

    def __init__(self, world, on_call=lambda name, when: None):
        self.made, self.connected = [], 0
        self.process = Process(world, lambda *call: (self.made.append(call), on_call(*call)))

    def __call__(self):
        self.connected += 1
        return self.process, self.process


def test_a_reason_is_found_within_the_records(world):
    assert "is PENDING" in RefusalLookup().reason([EDITED], OLD, "control", Connection(world))


def test_jobs_that_were_never_submitted_cost_one_listing_together():
    lookup, connection = RefusalLookup(), Connection(World())
    for _ in range(100):
        assert lookup.reason([REQUEST], OLD, "control", connection) == ""
    assert connection.made == [("turn keys", "before"), ("turn keys", "after")]


def test_what_cannot_be_read_is_tried_once_and_fails_nothing(world):
    def fail(name, when):
        raise OperatorError("no credentials")

    lookup, connection = RefusalLookup(), Connection(world, fail)
    assert [lookup.reason([EDITED], OLD, "control", connection) for _ in range(3)] == ["", "", ""]
    assert connection.connected == 1


def test_a_cloud_that_does_not_answer_holds_a_preview_up_once_and_not_for_long(world):
    answers = threading.Event()  # set only afterwards: a lookup that waits for it never ends
    connection = Connection(world, lambda name, when: answers.wait())
    lookup = RefusalLookup(bound=0.2)
    assert [lookup.reason([EDITED], OLD, "control", connection) for _ in range(3)] == ["", "", ""]
    assert connection.connected == 1
    answers.set()


def test_another_bucket_is_looked_up_all_the_same(world):
    lookup = RefusalLookup()

    def fail():
        raise OperatorError("no such project")

    assert lookup.reason([EDITED], OLD, "elsewhere", fail) == ""
    assert lookup.reason([EDITED], OLD, "control", Connection(world))


@pytest.mark.parametrize(
    ("project", "home", "backend", "offline"),
    [
        ("acme-ml-dev", "/x/.vt-local", "file:///x/.vt-local/pulumi", True),
        ("acme-ml-dev", "/x/.vt-local", "gs://state", False),
        ("acme-ml-dev", "", "file:///x/.vt-local/pulumi", False),
        ("acme-ml-dev", "", "", False),
        ("local-x", "/x/.vt-local", "file:///x/.vt-local/pulumi", False),
    ],
)
def test_a_real_project_previewed_against_the_stand_in_is_offline(
    monkeypatch, world, project, home, backend, offline
):
    monkeypatch.setenv("VT_LOCAL_HOME", home)
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend)
    assert is_offline(project) is offline


def test_a_comparison_with_the_cloud_submits_nothing_so_nothing_is_looked_up(world, monkeypatch):
    monkeypatch.setenv(COMPARES, "true")
    connection = Connection(world)
    assert RefusalLookup().reason([EDITED], OLD, "control", connection) == ""
    assert connection.connected == 0


def test_others_are_asked_only_where_the_records_show_no_reason(world):
    asked = []

    def ask():
        asked.append(1)
        return "there is no image x"

    lookup, connection = RefusalLookup(), Connection(world)
    assert "is PENDING" in lookup.reason([EDITED], OLD, "control", connection, ask)
    assert asked == []
    new = RefusalLookup().reason([REQUEST], OLD, "control", Connection(World()), ask)
    assert (new, asked) == ("there is no image x", [1])


def test_what_cannot_be_asked_is_no_reason_and_the_records_are_read_again(world):
    def refuse():
        raise OperatorError("403")

    lookup = RefusalLookup()
    assert lookup.reason([REQUEST], None, "control", Connection(world), refuse) == ""
    assert "is PENDING" in lookup.reason([EDITED], OLD, "control", Connection(world))


def test_an_offline_preview_connects_to_nothing(monkeypatch, world):
    monkeypatch.setenv("VT_LOCAL_HOME", "/x")
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file:///x/pulumi")
    connection = Connection(world)
    assert RefusalLookup().reason([EDITED], OLD, "control", connection) == ""
    assert connection.connected == 0


def test_an_answer_that_comes_in_time_is_taken_and_a_later_one_is_none():
    late = threading.Event()
    assert answer_within(10.0, lambda: "x") == "x"
    assert answer_within(0.01, late.wait) is None
    late.set()
