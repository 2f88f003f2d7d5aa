"""Where calls of the client stand, what they get beside their options, and what they leave out."""

from __future__ import annotations

import ast

import pytest

from tests.unit.vt.importing.test_client_calls import POOL, one
from vertex_training_cli.importing.command_lines import NO_FILES
from vertex_training_cli.importing.imported import ImportedJob, Note
from vertex_training_cli.importing.sdk_calls import jobs_in


def read(code: str) -> tuple[list[ImportedJob], list[str]]:
    return jobs_in([("s", ast.parse(code))], "nameless", NO_FILES)


def job(code: str) -> ImportedJob:
    [found], left_out = read(code)
    assert left_out == []
    return found


SUBMIT = f"aiplatform.CustomJob('j', [{POOL}]).run()\n"


@pytest.mark.parametrize(
    ("message", "region", "remarks"),
    [
        ("'projects/p/locations/r', spec", "r",
         ["<YOUR_SPEC> is made while the code runs: write the pools"]),
        ("custom_job=spec, parent=f'projects/{P}/locations/{R}'", "<YOUR_R>",
         ["<YOUR_SPEC> is made while the code runs: write the pools"]),
        ("", "", ["<CUSTOM_JOB> is made while the code runs: write the pools"]),
    ],
)  # fmt: skip
def test_a_message_that_is_made_while_the_code_runs_is_said(
    message: str, region: str, remarks: list[str]
) -> None:
    found = job(f"client.create_custom_job({message})")
    assert found == ImportedJob("nameless", {"workerPoolSpecs": []}, region=region, remarks=remarks)


GCLOUD = "gcloud ai custom-jobs create --display-name=j --worker-pool-spec=container-image-uri=i"


@pytest.mark.parametrize(
    ("line", "label"),
    [("{A}", "x"), ("$A", "x"), ("${A}", "x"), ("{{A}}", "{{A}}"), ("$B", "<YOUR_B>")],
)
def test_a_line_of_a_notebook_has_the_notebooks_names(line: str, label: str) -> None:
    found = job(f"A = 'x'\n__shell__({f'{GCLOUD} --labels=a={line}'!r})")
    assert found.labels == {"a": label}


def test_a_job_of_batch_that_is_refused_is_left_out() -> None:
    code = "import os\nos.system('gcloud batch jobs submit j --location=r')\n"
    found, left_out = read(code + SUBMIT)
    assert [each.name for each in found] == ["j"]
    [told] = left_out
    assert told.endswith("what it runs (s, line 2)")


def test_conditions_of_a_parameter_are_said() -> None:
    spec = "hpt.DoubleParameterSpec(0, 1, None, conditional_parameter_spec={'a': 1})"
    given = f"'hp', aiplatform.CustomJob('in', []), {{'a': 'MAXIMIZE'}}, {{'x': {spec}}}"
    found = one(f"aiplatform.HyperparameterTuningJob({given}).run()")
    assert found.notes == [Note("conditions of the parameter x are not read", "the search")]
    assert found.study["studySpec"]["metrics"] == [{"metricId": "a", "goal": "MAXIMIZE"}]


NAMED = "what `CustomJob` makes here, which the code gives another name, is left out (s, line 2)"
UNCALLED = "what `CustomJob` makes here, which nothing that was read calls, is left out (s, line 2)"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("make = functools.partial(aiplatform.CustomJob, labels={})\nmake('b').run()\n", [NAMED]),
        ("kinds = {'a': CustomJob}\nkinds['a']('b').run()\n", [NAMED]),
        ("class Mine(aiplatform.CustomJob): pass\nMine('b').run()\n", [NAMED]),
        ("list(map(lambda n: aiplatform.CustomJob(n).run(), 'bc'))\n", [UNCALLED]),
        ("isinstance(x, aiplatform.CustomJob)\ny: aiplatform.CustomJob = x\n", []),
        ("def f(x: CustomJob) -> CustomJob: ...\naiplatform.CustomJob.list()\n", []),
    ],
)
def test_what_makes_jobs_and_is_not_read_is_told(code: str, told: list[str]) -> None:
    found, left_out = read(f"aiplatform.CustomJob('a', []).run()\n{code}")
    assert ([each.name for each in found], left_out) == (["a"], told)
