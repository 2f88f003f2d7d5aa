"""Ids, states and reasons of jobs on Batch, as people read them."""

from __future__ import annotations

import pytest

from vertex_training.customjob.batch import naming

ID = "batch-0123456789abcdef0123"


@pytest.mark.parametrize(
    ("stack", "job", "turn", "expected"),
    [
        ("dev", "titanic", 1, "dev-titanic-0123456789abcdef0123"),
        ("dev", "titanic", 2, "dev-titanic-0123456789abcdef0123-t2"),
        ("Dev_1", "my.job", 1, "dev-1-my-job-0123456789abcdef0123"),
        ("1", "x", 1, "j-1-x-0123456789abcdef0123"),
        ("a", "1", 1, "a-1-0123456789abcdef0123"),
        ("", "", 1, "j-0123456789abcdef0123"),
        ("dev", "x" * 38, 1, f"dev-{'x' * 38}-0123456789abcdef0123"),
        ("dev", "x" * 39, 1, f"dev-{'x' * 38}-0123456789abcdef0123"),
        ("dev", f"{'x' * 37}-y", 1, f"dev-{'x' * 37}-0123456789abcdef0123"),  # no two hyphens
        ("dev", "x" * 39, 10, f"dev-{'x' * 34}-0123456789abcdef0123-t10"),
    ],
)
def test_an_id_names_stack_and_job_as_far_as_it_has_room(
    stack: str, job: str, turn: int, expected: str
) -> None:
    assert naming.job_id(stack, job, ID, turn) == expected
    assert len(expected) <= 63
    assert naming.is_job_of(expected, ID)


@pytest.mark.parametrize(
    "id_",
    [
        "dev-x-0123456789abcdef0123-t",
        "dev-x-0123456789abcdef0123-tx",
        "dev-x-0123456789abcdef0123-t2-t3",
        "dev-x-0123456789abcdef0123\n",
        "dev-x-0123456789abcdef01234",
        "dev-x0123456789abcdef0123",
        "0123456789abcdef0123",
    ],
)
def test_another_id_is_no_job_of_the_request(id_: str) -> None:
    assert not naming.is_job_of(id_, ID)


def test_states_of_batch_in_the_words_of_vertex_ai() -> None:
    assert naming.STATES == {
        "QUEUED": "JOB_STATE_QUEUED",
        "SCHEDULED": "JOB_STATE_PENDING",
        "RUNNING": "JOB_STATE_RUNNING",
        "SUCCEEDED": "JOB_STATE_SUCCEEDED",
        "FAILED": "JOB_STATE_FAILED",
        "CANCELLATION_IN_PROGRESS": "JOB_STATE_CANCELLING",
        "CANCELLED": "JOB_STATE_CANCELLED",
        "DELETION_IN_PROGRESS": "JOB_STATE_CANCELLING",
    }


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("Done.", 0, "Done."),
        ("Task failed.", 1, "Task failed."),
        ("Task failed.", 50000, "Task failed."),
        ("Task failed.", 50001, "Task failed. 50001: its Spot machine was taken away."),
        (
            "Exit code 50002.",
            0,
            "Exit code 50002. 50002: its machine stopped reporting: crashed, or without a way to "
            "Batch.",
        ),
        # The text of an event names its own code.
        ("Code 50003.", 50001, "Code 50003. 50003: its machine was started anew while it ran."),
        (
            "Task failed.",
            50004,
            "Task failed. 50004: it did not answer: a hanging step, or a full machine.",
        ),
        ("Task failed.", 50005, "Task failed. 50005: it ran longer than its timeout."),
        ("Task failed.", 50006, "Task failed. 50006: its machine was made anew while it ran."),
        ("Task failed.", 50007, "Task failed."),
        ("Task 150001 failed.", 0, "Task 150001 failed."),
    ],
)
def test_an_exit_code_of_batchs_own_is_explained(text: str, code: int, expected: str) -> None:
    assert naming.explain(text, code) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], ""),
        ([("Job failed.", 0)], "Job failed."),
        ([("Queued.", 0), ("Task failed.", 1), ("Job failed.", 0)], "Task failed. Job failed."),
        (
            [("First.", 1), ("Exit code 50005.", 0), ("Job failed.", 0)],
            "Exit code 50005. 50005: it ran longer than its timeout. Job failed.",
        ),
        ([("Queued.", 0), ("Job failed.", 1)], "Job failed."),  # said once
    ],
)
def test_the_reason_of_a_failure_is_its_last_exit_code_and_the_last_event(
    events: list[tuple[str, int]], expected: str
) -> None:
    assert naming.reason(events) == expected
