import threading

import pytest

from tests.unit.infra.customjob.fakes import EDITED, REQUEST, Process, World
from vertex_training.customjob.protocol import submission
from vertex_training.customjob.protocol.refusal import ReplacedJob
from vertex_training.customjob.protocol.timing import Timing
from vertex_training.customjob.refusal_lookup import (
    RefusalLookup,
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


def test_an_offline_preview_connects_to_nothing(monkeypatch, world):
    monkeypatch.setenv("VT_LOCAL_HOME", "/x")
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file:///x/pulumi")
    connection = Connection(world)
    assert RefusalLookup().reason([EDITED], OLD, "control", connection) == ""
    assert connection.connected == 0
