"""Ids, states and reasons of jobs on Batch, as people read them."""

from __future__ import annotations

from vertex_training.customjob.batch import naming


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
