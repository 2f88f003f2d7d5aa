"""Jobs that the generated client or a shell is given, and what is said of those nobody runs."""

from __future__ import annotations

import pytest

from tests.unit.vt.importing.test_client_calls import POOL, READ, one
from vertex_training_cli.importing.imported import ImportedJob, Note

JOB = f"CustomJob(display_name='a', job_spec={{'worker_pool_specs': [{POOL}]}})"


@pytest.mark.parametrize(
    ("request_", "region", "notes"),
    [
        ("{'parent': 'projects/p/locations/r', 'custom_job': {}}", "r", []),
        ("request={'parent': f'projects/p/locations/{r}', 'custom_job': {}}", "<YOUR_R>", []),
        ("CreateCustomJobRequest(parent='projects/p/locations/r', custom_job={})", "r", []),
        ("request={'parent': 'projects/p/locations/r', 'custom_job': {}, **more}", "r",
         [Note("`more` is not read", "s, line 2")]),
        ("{'custom_job': {}}, parent='projects/p/locations/r'", "r", []),
        ("'projects/p/locations/r', {}, 9", "r",
         [Note("arguments of `create_custom_job` without a name are not read", "s, line 2")]),
    ],
)  # fmt: skip
def test_a_request_has_its_job_and_its_region(
    request_: str, region: str, notes: list[Note]
) -> None:
    found = one(f"client.create_custom_job({request_.replace('{}', JOB)})\n")
    spec = {"workerPoolSpecs": [READ]}
    assert found == ImportedJob("a", spec, region=region, notes=notes)


def test_what_is_said_of_the_parameters_of_a_search_is_no_parameter() -> None:
    found = one(
        "spec = {'x': hpt.CategoricalParameterSpec(['a'])}\nchange(spec)\n"
        f"aiplatform.HyperparameterTuningJob('hp', aiplatform.CustomJob('in', [{POOL}]), "
        "{'acc': 'maximize'}, spec, 4, 2).run()\n"
    )
    assert [each["parameterId"] for each in found.study["studySpec"]["parameters"]] == ["x"]
    assert found.notes == [Note("`change(…)` gets it, and is not read", "s, line 3")]
