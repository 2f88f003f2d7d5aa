"""What a ladder makes of the records that it finds, and of those that it loses to others."""

from dataclasses import replace

import pytest

from tests.unit.infra.customjob.fakes import REQUEST, Process, World, job
from vertex_training.customjob.protocol.ladder import (
    MAX_LOOKS,
    CurrentRung,
    Ladder,
    job_with_turn,
    stop_climbing,
)
from vertex_training.customjob.protocol.ports import (
    REQUEST_ID_LABEL,
    IntentRecord,
    IntentState,
    StoredIntent,
    Timing,
    TurnRecord,
)
from vertex_training.customjob.protocol.turn import SubmissionTurn
from vertex_training.errors import (
    JobRefusedError,
    NotSubmittedError,
    PreconditionFailedError,
    RungPassedError,
)

IDS = ("id1", "id2", "id3")
RUNGS = [
    replace(REQUEST, request_id=id_, ladder=IDS, words=id_, labels={REQUEST_ID_LABEL: id_})
    for id_ in IDS
]
KEY = REQUEST.turn_key


def world(held="id1", *, number=1, withdrawn=False, **records):
    """A world where ``held`` has the turn; records are ``id: (state, job name)``."""
    made = World()
    if held:
        made.turns[KEY] = TurnRecord(held, 1, number, withdrawn)
    for id_, (state, name) in records.items():
        made.records[id_] = StoredIntent(IntentRecord(id_, state, "o", name), 1, 0.0)
    return made


def with_job(made, name, state, request_id, *, turn=1, out=False, error=""):
    made.jobs[name] = replace(
        job(name, state, turn=turn, error=error), out_of_stock=out, request_id=request_id
    )
    made.requests[name] = request_id
    return made.jobs[name]


def ladder(made, rungs=RUNGS, on_call=lambda name, when: None):
    process = Process(made, on_call)
    return Ladder(rungs, process, process, environment=process.environment())


@pytest.mark.parametrize(
    ("state", "name", "turn", "found"),
    [
        (IntentState.INTENT, "a", 1, False),  # claimed; nothing was sent
        (IntentState.SENDING, "", 2, True),  # its sender died; the job is found by its id
        (IntentState.SENDING, "", 3, True),
        (IntentState.SENDING, "", 1, False),  # of an earlier turn: not of this submission
        (IntentState.DONE, "a", 1, True),
        (IntentState.DONE, "gone", 2, False),
        (IntentState.RELEASED, "a", 2, True),
        (IntentState.RELEASED, "", 2, False),
    ],
)
def test_the_job_of_a_rung_is_the_one_that_its_record_proves(state, name, turn, found):
    made = world("id2", number=2, id2=(state, name))
    there = with_job(made, "a", "PENDING", "id2", turn=turn)
    expected = CurrentRung(RUNGS[1], there if found else None)
    assert ladder(made).current() == expected


@pytest.mark.parametrize(
    ("held", "withdrawn", "expected"),
    [
        ("id3", False, CurrentRung(RUNGS[2], None)),
        ("id3", True, None),  # the job left the stack
        ("other", False, None),  # another request was deployed
        ("", False, None),
    ],
)
def test_the_current_rung_is_the_one_that_has_the_turn(held, withdrawn, expected):
    assert ladder(world(held, withdrawn=withdrawn)).current() == expected


@pytest.mark.parametrize(
    ("rungs", "held", "withdrawn", "out", "expected"),
    [
        (RUNGS[:1], "id3", False, True, RUNGS[0]),  # no ladder: no record is read
        (RUNGS, "", False, False, RUNGS[0]),
        (RUNGS, "other", False, True, RUNGS[0]),
        (RUNGS, "id1", False, False, RUNGS[0]),
        (RUNGS, "id1", False, True, replace(RUNGS[1], moves=True)),
        (RUNGS, "id1", True, True, RUNGS[0]),
        (RUNGS, "id2", False, True, replace(RUNGS[2], moves=True)),
        (RUNGS, "id3", False, True, RUNGS[2]),
    ],
)
def test_the_submitted_rung_has_the_turn_or_follows_a_stock_out(
    rungs, held, withdrawn, out, expected
):
    made = world(held, withdrawn=withdrawn, **dict.fromkeys(IDS, (IntentState.DONE, "a")))
    with_job(made, "a", "FAILED", held, out=out)
    assert ladder(made, rungs).to_submit() == expected


def test_a_next_rung_that_is_refused_for_its_own_job_says_why():
    made = world("id1", id1=(IntentState.DONE, "a"), id2=(IntentState.DONE, "b"))
    with_job(made, "a", "FAILED", "id1", out=True)
    with_job(made, "b", "SUCCEEDED", "id2")
    made.jobs["b"] = replace(made.jobs["b"], digest="another request")
    for act in ("climb", "place"):
        with pytest.raises(JobRefusedError, match="another"):
            getattr(ladder(made), act)()
    assert made.sent == 0


def refused(name, when):
    """Another process writes the turn before this one, each time."""
    if (name, when) == ("turn write", "before"):
        raise PreconditionFailedError


def test_who_never_gets_the_turn_says_that_others_move_the_job():
    made = world("id1", id1=(IntentState.DONE, "a"))
    with_job(made, "a", "FAILED", "id1", out=True)
    known = replace(RUNGS[0], body="", labels={})
    process = Process(made, refused)
    ended = []
    with pytest.raises(NotSubmittedError) as raised:
        stop_climbing(known, process, process, lambda *job: ended.append(job))
    assert str(raised.value) == (
        "other processes are submitting ladder rungs of job 'titanic'. Run the command again."
    )
    assert ended == [("id1", "a")] * MAX_LOOKS
    assert made.turns[KEY] == TurnRecord("id1", 1)


def test_a_job_that_leaves_the_stack_ends_what_its_rung_has_and_withdraws_its_turn():
    made = world("id2", number=2, id2=(IntentState.DONE, "b"))
    with_job(made, "b", "RUNNING", "id2")
    with_job(made, "c", "RUNNING", "id9")  # whoever writes records could name any job
    made.records["id2"] = replace(
        made.records["id2"], record=replace(made.records["id2"].record, job_name="c")
    )
    process = Process(made)
    ended = []
    known = replace(RUNGS[0], body="", labels={})
    assert stop_climbing(known, process, process, lambda *job: ended.append(job))
    assert ended == [("id2", "b")] * 2  # once more when nothing can be made any more
    assert made.turns[KEY] == TurnRecord("id2", 2, 2, withdrawn=True)


@pytest.mark.parametrize("held", ["", "other"])
def test_a_job_without_a_turn_has_nothing_to_end(held):
    process = Process(world(held))
    known = replace(RUNGS[0], body="", labels={})
    assert not stop_climbing(known, process, process, pytest.fail)


@pytest.mark.parametrize(
    ("held", "records", "expected"),
    [
        ("", {}, None),
        ("other", {"other": (IntentState.DONE, "x")}, None),
        ("id2", {}, ("id2", "")),
        ("id2", {"id2": (IntentState.SENDING, "")}, ("id2", "")),
        ("id2", {"id1": (IntentState.DONE, "a"), "id2": (IntentState.DONE, "b")}, ("id2", "b")),
    ],
)
def test_the_request_with_the_turn_is_returned_with_its_job(held, records, expected):
    assert job_with_turn(RUNGS[0], Process(world(held, **records))) == expected


@pytest.mark.parametrize(
    ("held", "out", "gone", "expected"),
    [
        ("id3", True, False, "rung 1 (id1): none; rung 2 (id2): none; rung 3 (id3): none"),
        (
            "id3", True, True,
            "rung 1 (id1): the job's record was deleted; rung 2 (id2): none; rung 3 (id3): none",
        ),
        ("id3", False, False, ""),
        ("id2", True, False, ""),  # one is left
        ("other", True, False, ""),
    ],
)  # fmt: skip
def test_no_rung_is_left_once_the_last_one_is_out_of_stock(held, out, gone, expected):
    made = world(held, **{id_: (IntentState.DONE, id_) for id_ in IDS})
    for id_ in IDS[1:] if gone else IDS:
        with_job(made, id_, "FAILED", id_, out=out, error="none.")
    assert ladder(made).exhausted() == expected


LEFT = "job 'titanic' has left the previous ladder rung or the stack"


@pytest.mark.parametrize(
    ("held", "withdrawn", "moves", "refusal"),
    [
        ("id1", False, True, ""),
        ("id2", False, True, ""),  # its own turn: sent once more
        ("id3", False, True, "a later ladder rung of job 'titanic' was submitted"),
        ("id3", False, False, "a later ladder rung of job 'titanic' was submitted"),
        ("other", False, True, LEFT),
        ("id1", True, True, LEFT),
        ("id2", True, True, LEFT),
        ("", False, True, LEFT),
        # The engine declares the job, and brings it back.
        ("other", False, False, ""),
        ("id3", True, False, ""),
        ("", False, False, ""),
    ],
)
def test_a_rung_gets_the_turn_from_the_one_before_it_or_from_the_engine(
    held, withdrawn, moves, refusal
):
    made = world(held, number=4, withdrawn=withdrawn)
    process = Process(made)
    request = replace(RUNGS[1], moves=moves)
    turn = SubmissionTurn(request, process, process, Timing(), process.environment())
    if refusal:
        with pytest.raises(RungPassedError) as raised:
            turn.acquire()
        assert str(raised.value) == refusal
        assert made.turns == world(held, number=4, withdrawn=withdrawn).turns
    else:
        number = 1 if not held else 4 if held == "id2" else 5
        assert turn.acquire() == number
        assert made.turns[KEY] == TurnRecord("id2", 2 if held else 1, number)
