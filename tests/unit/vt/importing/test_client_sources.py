"""Where calls of the client stand, what they get beside their options, and what they leave out."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tests.unit.vt.importing.test_client_calls import BY_REQUEST, INIT, N1, POOL, READ, STAGED, one
from vertex_training_cli.importing.command_lines import NO_FILES
from vertex_training_cli.importing.imported import ImportedJob, Note
from vertex_training_cli.importing.sdk_calls import jobs_in

NO_BUCKET = "the source names no staging bucket: it has no output directory"


def read(code: str) -> tuple[list[ImportedJob], list[str]]:
    return jobs_in([("s", ast.parse(code))], "nameless", NO_FILES)


def job(code: str) -> ImportedJob:
    [found], left_out = read(code)
    assert left_out == []
    return found


SUBMIT = f"aiplatform.CustomJob('j', [{POOL}]).run()\n"


@pytest.mark.parametrize(
    ("init", "region", "fields", "key", "remarks"),
    [
        ("", "", {}, "", [NO_BUCKET]),
        ("aiplatform.init()", "us-central1", {}, "", [NO_BUCKET]),
        ("aiplatform.init(location=None)", "us-central1", {}, "", [NO_BUCKET]),
        ("aiplatform.init('p', 'r')", "r", {}, "", [NO_BUCKET]),
        *((f"{name}.init(location='r')", "r", {}, "", [NO_BUCKET]) for name in (
            "aip", "ai_platform", "vertex", "vertex_ai", "vertexai", "aiplatform_v1beta1", "AIP")),
        ("wandb.init(location='r')", "", {}, "", [NO_BUCKET]),
        ("init(location='r')", "", {}, "", [NO_BUCKET]),
        ("aiplatform.init(network='n', service_account='a', encryption_spec_key_name='k',\n"
         "experiment='e', staging_bucket='acme-s')",
         "us-central1", {"network": "n", "serviceAccount": "a", "baseOutputDirectory": STAGED}, "k",
         [BY_REQUEST]),
        ("aiplatform.init(location='a')\naiplatform.init(staging_bucket='gs://acme-s/')", "a",
         {"baseOutputDirectory": STAGED}, "",
         ["the client makes a folder in gs://acme-s/ for each job: it is named by the request id"]),
    ],
)  # fmt: skip
def test_the_clients_init_gives_defaults_to_what_follows(
    init: str, region: str, fields: dict[str, Any], key: str, remarks: list[str]
) -> None:
    spec = {"workerPoolSpecs": [READ], **fields}
    assert job(f"{init}\n{SUBMIT}") == ImportedJob(
        "j", spec, encryption_key=key, region=region, remarks=remarks
    )


def test_options_of_a_job_win_over_those_of_init_unless_they_are_none() -> None:
    init = "aiplatform.init(location='a', service_account='i', network='i')\n"
    found = job(f"{init}aiplatform.CustomJob('j', [], location='b').run(service_account='r')")
    assert (found.region, found.spec["serviceAccount"], found.spec["network"]) == ("b", "r", "i")
    found = job(f"{init}aiplatform.CustomContainerTrainingJob('j', 'i', location=None).run()")
    assert (found.region, found.spec["network"]) == ("a", "i")


@pytest.mark.parametrize("made", ["CustomJob('j', [])", "CustomJob('j', []) if c else other"])
def test_what_a_method_of_a_job_returns_is_the_job(made: str) -> None:
    found = job(f"a = aiplatform.{made}\nb = a.unheard_of()\nb.run(timeout=9)\n")
    assert found.spec == {"workerPoolSpecs": [], "scheduling": {"timeout": "9s"}}


@pytest.mark.parametrize(
    "code",
    [
        f"def main():\n    {SUBMIT}",
        f"def main(a, *, b=1):\n    {SUBMIT}",
        f"async def main():\n    {SUBMIT}",
        f"class A:\n    def main(self):\n        {SUBMIT}",
        f"class A:\n    @classmethod\n    def main(cls):\n        {SUBMIT}",
        f"def a():\n    {SUBMIT}\ndef b():\n    a()\ndef c():\n    b()\n",
        f"def b():\n    a()\ndef a():\n    {SUBMIT}",
        f"def a():\n    {SUBMIT}\na()",
        f"if __name__ == '__main__':\n    {SUBMIT}",
        f"from google.cloud.aiplatform import CustomJob as C\nC('j', [{POOL}]).submit()",
        f"j = aiplatform.CustomJob('j', [{POOL}])\nj.run()",
        f"client.create_custom_job('projects/p', "
        f"{{'display_name': 'j', 'job_spec': {{'worker_pool_specs': [{POOL}]}}}})",
        f"client.create_custom_job(parent='p', custom_job=dict(display_name='j', "
        f"job_spec=dict(worker_pool_specs=[{POOL}])))",
        f"client.create_custom_job({{'parent': 'p', 'custom_job': "
        f"{{'display_name': 'j', 'job_spec': {{'worker_pool_specs': [{POOL}]}}}}}})",
    ],
)  # fmt: skip
def test_a_job_is_read_wherever_it_is_made(code: str) -> None:
    found = job(code)
    assert (found.name, found.spec) == ("j", {"workerPoolSpecs": [READ]})
    assert found.notes == []


def test_a_method_that_nothing_calls_has_no_self_among_its_arguments() -> None:
    code = "def main(self, m='n1-standard-4'):\n    aiplatform.CustomContainerTrainingJob('j', 'i')"
    [pool] = job(f"{code}.run(machine_type=m)").spec["workerPoolSpecs"]
    assert pool["machineSpec"] == N1
    found = job("def main(self):\n    aiplatform.CustomJob(self.x, []).run()")
    assert found.name == "your-x"


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


def test_a_search_of_the_generated_client_is_a_tuning_job() -> None:
    study = (
        "{'display_name': 's', 'max_trial_count': 3, 'trial_job_spec': {'worker_pool_specs': []}}"
    )
    found = job(f"client.create_hyperparameter_tuning_job(hyperparameter_tuning_job={study})")
    assert found == ImportedJob(
        "s", {"workerPoolSpecs": []}, {"maxTrialCount": 3, "displayName": "s"}
    )


GCLOUD = "gcloud ai custom-jobs create --display-name=j --worker-pool-spec=container-image-uri=i"
WORDS = repr(GCLOUD.split())


@pytest.mark.parametrize(
    "call",
    [
        *(f"{name}({GCLOUD!r})" for name in (
            "run", "subprocess.run", "subprocess.call", "subprocess.check_call",
            "subprocess.check_output", "subprocess.Popen", "os.system", "os.popen",
            "subprocess.getoutput", "__shell__")),
        f"subprocess.run({WORDS}, check=True)",
        f"subprocess.run([*{WORDS}])",
        f"line = {GCLOUD!r}\nsubprocess.run(line, shell=True)",
        f"subprocess.run('cd x && {GCLOUD} && echo', shell=True)",
        f"def main():\n    subprocess.run({WORDS})",
        f"def main():\n    os.system({GCLOUD!r})",
    ],
)  # fmt: skip
def test_gcloud_that_python_runs_is_a_job(call: str) -> None:
    found = job(call)
    pool = {"replicaCount": 1, "machineSpec": {"machineType": "<MACHINE_TYPE>"}}
    assert found == ImportedJob(
        "j", {"workerPoolSpecs": [{**pool, "containerSpec": {"imageUri": "i"}}]}
    )


@pytest.mark.parametrize(
    "call",
    ["os.system('ls')", "run(unknown)", "run(3)", "run()", "unheard(" + repr(GCLOUD) + ")"],
)
def test_other_commands_are_no_jobs(call: str) -> None:
    assert read(call) == ([], [])


@pytest.mark.parametrize(
    ("line", "label"),
    [("{A}", "x"), ("$A", "x"), ("${A}", "x"), ("{{A}}", "{{A}}"), ("$B", "<YOUR_B>")],
)
def test_a_line_of_a_notebook_has_the_notebooks_names(line: str, label: str) -> None:
    found = job(f"A = 'x'\n__shell__({f'{GCLOUD} --labels=a={line}'!r})")
    assert found.labels == {"a": label}


def test_words_of_a_list_are_those_of_the_command_whatever_is_in_them() -> None:
    words = [*GCLOUD.split(), "--labels=a=x y", "--args=it's"]
    found = job(f"subprocess.run({words!r})")
    assert found.labels == {"a": "x y"}
    assert found.spec["workerPoolSpecs"][0]["containerSpec"] == {"imageUri": "i", "args": ["it's"]}


def test_what_a_command_prints_is_unknown() -> None:
    found = job(f"name = __shell__('ls')\naiplatform.CustomJob(name, [{POOL}]).run()")
    assert (found.name, found.spec) == ("your-output", {"workerPoolSpecs": [READ]})


def test_a_job_of_batch_that_is_refused_is_left_out() -> None:
    code = "import os\nos.system('gcloud batch jobs submit j --location=r')\n"
    found, left_out = read(code + SUBMIT)
    assert [each.name for each in found] == ["j"]
    [told] = left_out
    assert told.endswith("what it runs (s, line 2)")


PARSER = (
    "p = argparse.ArgumentParser()\np.add_argument('--{}', action='store_true')\n"
    "a = p.parse_args()\n"
)


def test_a_job_that_a_default_skips_is_left_out_and_told() -> None:
    big = "aiplatform.CustomJob('big', []).run(f(1))"
    code = f"{PARSER.format('big')}if a.big:\n    {big}\n    {big}\nelse:\n    {SUBMIT}"
    [found], left_out = read(code)
    why = "False is the default of --big"
    assert left_out == [f"`CustomJob(…)` is left out, as {why} (s, line {line})" for line in (5, 6)]
    assert (found.name, found.notes) == ("j", [Note(why, "s, line 2", guessed=True)])


def test_the_only_job_of_a_branch_is_read_whatever_the_default_is() -> None:
    code = f"{PARSER.format('go')}if a.go:\n    {SUBMIT}"
    found = job(code)
    assert [str(note) for note in found.notes] == ["only `if a.go` (s, line 4)"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("if c:\n    j = aiplatform.CustomJob('j', [])\nelse:\n"
         "    j = aiplatform.CustomJob('j', [])\nj.run(timeout=1)\n",
         {"only `if c` (s, line 1)", "not `if c` (s, line 1)"}),
        ("j = aiplatform.CustomJob('j', [])\nif c:\n    j.run(timeout=1)\nelse:\n"
         "    j.run(timeout=2)", {"only `if c` (s, line 2)", "not `if c` (s, line 2)",
                                  "timeout is 1 or 2: `j.run` cannot be decided (s, line 5)"}),
        ("j = aiplatform.CustomJob('j', [])\nj.run(**more)",
         {"`**more` is not read (s, line 2)"}),
        ("aiplatform.CustomJob('j', [], **more).run()", {"`**more` is not read (s, line 1)"}),
        ("aiplatform.CustomJob('j', [], 1, 2, 3, 4).run(service_account='a')",
         {"arguments of `CustomJob` without a name are not read (s, line 1)"}),
        ("def f(n=None):\n    aiplatform.CustomJob('j', []).run(network=n)\n", set()),
        ("o = None if c else None\naiplatform.CustomJob('j', []).run(network=o)", set()),
        # What was decided before says nothing of a job behind it.
        ("if c:\n    a = 1\nelse:\n    a = 2\naiplatform.CustomJob('j', []).run()", set()),
        ("l = []\nadd(l)\naiplatform.CustomJob('j', l).run()",
         {"`add(…)` gets it, and is not read (s, line 2)"}),
    ],
)  # fmt: skip
def test_what_is_not_sure_of_a_job_is_a_note(code: str, said: set[str]) -> None:
    found, left_out = read(code)
    assert {str(note) for each in found for note in each.notes} == said
    assert left_out == []


@pytest.mark.parametrize("words", ["image_uri='i'", "imageUri='i'"])
def test_messages_of_the_client_are_mappings(words: str) -> None:
    code = f"spec = types.WorkerPoolSpec(container_spec=types.ContainerSpec({words}))\n"
    found = job(f"{code}aiplatform.CustomJob('j', [spec]).run()")
    assert found.spec == {"workerPoolSpecs": [{"containerSpec": {"imageUri": "i"}}]}


def test_a_search_has_no_folder_of_its_own_and_notes_of_its_trials_job() -> None:
    inner = f"pools = []\nadd(pools)\ninner = aiplatform.CustomJob('in', pools)\n{INIT}"
    code = "aiplatform.HyperparameterTuningJob('hp', {}, {{'a': 'minimize'}}, {{}}, 2, 1).run()"
    found = job(inner + code.format("inner"))
    assert (found.name, found.spec) == ("hp", {"workerPoolSpecs": []})
    assert found.remarks == [NO_BUCKET]
    assert found.notes == [Note("`add(…)` gets it, and is not read", "s, line 2")]
    unknown = one(code.format("unknown"))
    assert unknown.remarks == ["the job of the trials is not read (s, line 2): write the pools"]
    odd = one("aiplatform.HyperparameterTuningJob('hp', unknown, metrics, parameters).run()")
    assert odd.remarks[1] == "what is searched is made while the code runs (s, line 2)"
    assert odd.study["studySpec"] == {
        "metrics": [], "parameters": [], "measurementSelectionType": "BEST_MEASUREMENT",
    }  # fmt: skip


def test_arguments_without_a_name_are_those_of_the_client() -> None:
    found = one("aiplatform.CustomTrainingJob('j', 't.py', 'e:1', ['x']).run()\n")
    assert (found.script, found.requirements) == ("t.py", ("x",))
    words = [*GCLOUD.replace("ai custom-jobs create", "batch jobs submit").split()[:4], "j"]
    flags = ["--location=r", "--container-image-uri=i"]
    batch = job(f"subprocess.run({[*words, *flags]!r})")
    assert (batch.name, batch.region, batch.backend) == ("j", "r", "batch")


def test_conditions_of_a_parameter_are_said() -> None:
    spec = "hpt.DoubleParameterSpec(0, 1, None, conditional_parameter_spec={'a': 1})"
    given = f"'hp', aiplatform.CustomJob('in', []), {{'a': 'MAXIMIZE'}}, {{'x': {spec}}}"
    found = one(f"aiplatform.HyperparameterTuningJob({given}).run()")
    assert found.notes == [Note("conditions of the parameter x are not read", "the search")]
    assert found.study["studySpec"]["metrics"] == [{"metricId": "a", "goal": "MAXIMIZE"}]


def test_pools_with_numbers_name_those_that_are_missing() -> None:
    found = job(f"my_pool_03 = {POOL}\nPool1 = [1]\npool_x = {POOL}\npool_1 = {POOL}\nadd(pool_1)")
    assert found == ImportedJob(
        "nameless", {"workerPoolSpecs": [READ, READ]},
        remarks=["this is a part of a job: pool 0, 2 is not in the source"],
        notes=[Note("`add(…)` gets it, and is not read", "s, line 5")],
    )  # fmt: skip


NAMED = "what `CustomJob` makes here, which the code gives another name, is left out (s, line 2)"
UNCALLED = "what `CustomJob` makes here, which nothing that was read calls, is left out (s, line 2)"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("Job = aiplatform.CustomJob\nJob('b').run()\n", [NAMED]),
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
