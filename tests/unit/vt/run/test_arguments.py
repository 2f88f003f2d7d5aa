"""Arguments of ``vt run``, what it says of its cost, and the exit code that it hands on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.customjob.test_rules import STACK, file
from tests.unit.infra.stacks import planned
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.customjob.rules.context import Context
from vertex_training.errors import CommandError
from vertex_training_cli.run.command import print_notes
from vertex_training_cli.run.submission import PreparedRun, add_arguments, with_words


@pytest.mark.parametrize(
    ("args", "words", "result"),
    [
        (["--a=1", "--b=2"], ["--a=3"], ["--b=2", "--a=3"]),
        (["--a", "1", "x"], ["--a=3"], ["x", "--a=3"]),
        (["--fast", "--a=1"], ["--fast"], ["--a=1", "--fast"]),
        (["--a", "--b"], ["--a=1"], ["--b", "--a=1"]),
        ([], ["train", "--a=1"], ["train", "--a=1"]),
        (["x=1"], ["x=2"], ["x=1", "x=2"]),
    ],
)
def test_equal_flags_are_replaced_and_others_stay(
    args: list[str], words: list[str], result: list[str]
) -> None:
    assert with_words(args, words) == result


@pytest.mark.parametrize("content", [None, [], "x", {}, {"workerPoolSpecs": None}])
def test_a_file_without_a_task_is_refused(content: object) -> None:
    with pytest.raises(CommandError, match="no task that accepts arguments"):
        add_arguments(content, ["--a=1"], "f.yaml")


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ({"limits": {"maxUsdPerJob": 500}}, True),
        ({"limits": {"maxUsdPerEnvironment": 500}}, True),
        ({"teams": {"vision": {"limits": {"maxUsdPerTeam": 5}}}}, True),
        ({"limits": {"regions": ["us-central1"]}}, False),
    ],
)
def test_a_run_says_that_limits_do_not_add_runs_up(
    sections: dict[str, Any], told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    print_notes(PreparedRun(request_of("train"), (), {}), planned(**sections).declared)
    line = "costs at most $36.71 in 168 h. Each run may cost up to the limits in USD."
    assert (line in capsys.readouterr().err) is told


def request_of(name: str) -> JobRequest:
    """The request of a job on one n1-standard-4, without a timeout."""
    found = job_file.check_job_files([file(name)], {}, Context.of(STACK))[name].request
    assert found is not None
    return found
