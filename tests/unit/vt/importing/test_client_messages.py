"""Jobs that the generated client or a shell is given, and what is said of those nobody runs."""

from __future__ import annotations

import pytest

from tests.unit.vt.importing.test_client_calls import BY_REQUEST, POOL, READ, one, read
from vertex_training_cli.importing.imported import ImportedJob, Note

SENT = "client.create_custom_job(parent='projects/p/locations/us-east1', custom_job={})\n"
JOB = f"CustomJob(display_name='a', job_spec={{'worker_pool_specs': [{POOL}]}})"
SEARCH = (
    "HyperparameterTuningJob(display_name='s', max_trial_count=3, parallel_trial_count=1, "
    f"study_spec={{}}, trial_job_spec={{'worker_pool_specs': [{POOL}]}})"
)


def test_a_message_of_the_generated_client_is_one_job_that_runs() -> None:
    idle, sent = read(f"aiplatform.CustomJob('idle', [{POOL}])\n{SENT.format(JOB)}")
    assert idle.remarks == [BY_REQUEST, "nothing that was read runs this job (s, line 2)"]
    assert (sent.name, sent.region, sent.remarks) == ("a", "us-east1", [])
    assert sent.spec == {"workerPoolSpecs": [READ]}


@pytest.mark.parametrize(
    ("request_", "region", "notes"),
    [
        ("{'parent': 'projects/p/locations/r', 'custom_job': {}}", "r", []),
        ("request={'parent': f'projects/p/locations/{r}', 'custom_job': {}}", "<YOUR_R>", []),
        ("CreateCustomJobRequest(parent='projects/p/locations/r', custom_job={})", "r", []),
        ("request={'parent': 'projects/p/locations/r', 'custom_job': {}, **more}", "r",
         [Note("`more` is not read", "s, line 2")]),
        ("{'custom_job': {}}, parent='projects/p/locations/r'", "r", []),
        ("'projects/p/locations/r', {}", "r", []),
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


@pytest.mark.parametrize(
    "sent",
    [
        f"client.create_hyperparameter_tuning_job('projects/p/locations/us-east1', {SEARCH})\n",
        "client.create_hyperparameter_tuning_job(CreateHyperparameterTuningJobRequest("
        f"parent='projects/p/locations/us-east1', hyperparameter_tuning_job={SEARCH}))\n",
        "client.create_hyperparameter_tuning_job(request={'parent': 'x', "
        f"'hyperparameter_tuning_job': {SEARCH}}})\n",
        f"client.create_hyperparameter_tuning_job(hyperparameter_tuning_job={SEARCH})\n",
    ],
)
def test_a_search_of_the_generated_client_is_one_job(sent: str) -> None:
    found = one(sent)
    assert (found.name, found.spec) == ("s", {"workerPoolSpecs": [READ]})
    assert (found.study["maxTrialCount"], found.study["parallelTrialCount"]) == (3, 1)


def test_what_is_said_of_the_parameters_of_a_search_is_no_parameter() -> None:
    found = one(
        "spec = {'x': hpt.CategoricalParameterSpec(['a'])}\nchange(spec)\n"
        f"aiplatform.HyperparameterTuningJob('hp', aiplatform.CustomJob('in', [{POOL}]), "
        "{'acc': 'maximize'}, spec, 4, 2).run()\n"
    )
    assert [each["parameterId"] for each in found.study["studySpec"]["parameters"]] == ["x"]
    assert found.notes == [Note("`change(…)` gets it, and is not read", "s, line 3")]


def test_a_search_of_a_job_that_is_not_read_has_no_folder_of_the_client() -> None:
    found = one("aiplatform.HyperparameterTuningJob('hp', given, {'acc': 'maximize'}, {}).run()\n")
    assert (found.spec, found.region) == ({"workerPoolSpecs": []}, "europe-west4")
    assert found.remarks == ["the job of the trials is not read (s, line 2): write the pools"]


def test_a_container_without_an_image_has_an_empty_one() -> None:
    [pool] = one("aiplatform.CustomContainerTrainingJob('j').run()\n").spec["workerPoolSpecs"]
    assert pool["containerSpec"] == {"imageUri": ""}


@pytest.mark.parametrize(
    ("code", "note"),
    [
        (f"j = aiplatform.CustomJob('j', [{POOL}])\nj.run(**more)\n",
         Note("`**more` is not read", "s, line 3")),
        (f"j = aiplatform.CustomJob('j', [{POOL}], **more)\nj.run()\n",
         Note("`**more` is not read", "s, line 2")),
        (f"aiplatform.CustomJob('j', [{POOL}], None, 'p', 'r', None, {{'a': 'b'}}).run()\n",
         Note("arguments of `CustomJob` without a name are not read", "s, line 2")),
        (f"j = aiplatform.CustomJob('j', [{POOL}])\nj.run('a@p.iam.gserviceaccount.com')\n",
         Note("arguments of `run` without a name are not read", "s, line 3")),
        ("name = 'a' if unknown else 'b'\nos.system(f'gcloud ai custom-jobs create "
         "--display-name={name} --worker-pool-spec=container-image-uri=i')\n",
         Note("the value is 'a' or 'b': `unknown` cannot be decided", "s, line 2")),
        (f"if unknown:\n    aiplatform.CustomJob('j', [{POOL}]).run()\n",
         Note("only `if unknown`", "s, line 2")),
    ],
)  # fmt: skip
def test_what_is_said_of_a_call_is_said_of_its_job(code: str, note: Note) -> None:
    assert one(code).notes == [note]


WORDS = ["gcloud", "ai", "custom-jobs", "create", "--display-name=g", "--region=us-east1"]
SPEC = "--worker-pool-spec=machine-type=m,replica-count=1,container-image-uri=i"
MADE = {"machineSpec": {"machineType": "m"}, "replicaCount": 1, "containerSpec": {"imageUri": "i"}}


@pytest.mark.parametrize(
    "code",
    [
        f"subprocess.run({[*WORDS, SPEC]}, check=True)\n",
        f"subprocess.run({[WORDS[0], '-q', '--format', 'json', *WORDS[1:], SPEC]})\n",
        f"subprocess.check_call({' '.join([*WORDS, SPEC])!r}, shell=True)\n",
        f"os.system('{' '.join(WORDS)} ' + {SPEC!r})\n",
        f'spec = {SPEC!r}\nos.system(f"{" ".join(WORDS)} {{spec}}")\n',
    ],
)
def test_a_line_of_gcloud_in_python_is_a_job_that_runs(code: str) -> None:
    idle, found = read(f"aiplatform.CustomJob('idle', [{POOL}])\n{code}")
    assert idle.remarks[1:] == ["nothing that was read runs this job (s, line 2)"]
    assert (found.name, found.region, found.remarks) == ("g", "us-east1", [])
    assert found.spec == {"workerPoolSpecs": [MADE]}


def test_a_function_that_nothing_calls_is_read_through_those_that_call_it() -> None:
    code = (
        f"def make(name):\n    return aiplatform.CustomJob(name, [{POOL}])\n"
        "def send(name):\n    make(name).run()\n"
        "def main():\n    send('deep')\n"
        "def other():\n    pass\n"
        "class Trainer:\n    def go(self, name='own'):\n        make(name).run()\n"
    )
    found = read(code)
    assert [(each.name, each.remarks) for each in found] == [
        ("deep", [BY_REQUEST]), ("own", [BY_REQUEST])
    ]  # fmt: skip
    assert [each.notes for each in found] == [
        [],
        [Note("the default of name in go(), as nothing here calls it", "s, line 11", True)],
    ]
