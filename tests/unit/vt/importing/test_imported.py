"""An imported job: its key, its message by either spelling, and the folder that the client made."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training_cli.importing.imported import (
    ImportedJob,
    from_message,
    key_of,
)


def test_a_text_without_a_key_has_the_default() -> None:
    assert (key_of("", ""), key_of("!", "bucket"), key_of("1", "bucket")) == (
        "", "bucket", "bucket-1"
    )  # fmt: skip


POOLS = {"workerPoolSpecs": []}
ALONE = (
    "of a tuning job the source has the job of its trials alone: without studySpec and "
    "maxTrialCount it is imported as a job"
)


@pytest.mark.parametrize(
    ("message", "job"),
    [
        ({"worker_pool_specs": []}, ImportedJob("default", POOLS)),
        ({"display_name": "A b", "job_spec": POOLS}, ImportedJob("a-b", POOLS)),
        ({"jobSpec": [{}], "labels": "<YOUR_LABELS>", "encryptionSpec": "<YOUR_KEY>"},
         ImportedJob("default", {"workerPoolSpecs": [{}]}, labels={"labels": "<YOUR_LABELS>"},
                     encryption_key="<YOUR_KEY>")),
        ({"jobSpec": POOLS, "state": "x", "new_field": 1, "webAccessUris": {}},
         ImportedJob("default", POOLS, remarks=[
             "newField is no field of a CustomJob, and is left out"])),
        ({"trial_job_spec": POOLS, "max_trial_count": 2, "displayName": "S"},
         ImportedJob("s", POOLS, {"maxTrialCount": 2, "displayName": "S"})),
        ({"trial_job_spec": POOLS, "displayName": "S", "labels": {"a": "b"}},
         ImportedJob("s", POOLS, labels={"a": "b"}, remarks=[ALONE])),
    ],
)  # fmt: skip
def test_a_message_is_a_job_by_either_spelling(message: dict[str, Any], job: ImportedJob) -> None:
    assert from_message(message, "default") == job
