"""`vt jobs` about tuning jobs, through the official client, with trials that run."""

from __future__ import annotations

from tests.unit.localcloud.conftest import Cloud
from tests.unit.localcloud.tuning import studies
from tests.unit.vt.jobs.test_commands import Vt, vt
from vertex_training.customjob.kinds import TUNING_JOB
from vertex_training.customjob.protocol.ports import (
    JOB_LABEL,
    REQUEST_ID_LABEL,
    RUN_LABEL,
    STACK_LABEL,
)

__all__ = ["vt"]
LABELS = {STACK_LABEL: "local", JOB_LABEL: "tune", RUN_LABEL: "2", REQUEST_ID_LABEL: "tune-2"}


def tune(cloud: Cloud, code: str = studies.REPORT, **more: object) -> str:
    """Resource name of a tuning job, labelled as the provider of stack `local` does."""
    labels = TUNING_JOB.sent_labels(LABELS)
    study = {"algorithm": "RANDOM_SEARCH"}
    made = studies.tuning(studies.python(code), labels=labels, study=study, **more)
    return studies.submit(cloud, made)


def test_logs_are_of_one_trial_or_of_each_in_turn(vt: Vt, cloud: Cloud) -> None:
    name = tune(cloud, "print('hello')" + studies.REPORT, trials=2)
    studies.wait(cloud, name)
    lines = [line for line in vt("logs", "tune").stdout.splitlines() if "hello" in line]
    assert lines == ["trial 1 | hello", "trial 2 | hello"]
    assert "hello" in vt("logs", "tune", "--trial", "2").stdout.splitlines()
    refused = vt("logs", "tune", "--trial", "9", code=1)
    assert "trial '9' does not exist" in refused.stderr
    assert "1, 2" in refused.stderr
    assert "--trial" in vt("logs", "tune", "-f", code=1).stderr
