"""Reading code without running it: what was not evaluated is a <NAME> or a line with its place."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.importing import sources
from vertex_training_cli.importing.imported import ImportedJob

INIT = """\
import argparse, copy, os, sys
from google.cloud import aiplatform
from google.cloud.aiplatform import hyperparameter_tuning as hpt
aiplatform.init(project="acme", location="us-central1", staging_bucket="gs://acme-staging")
"""
POOL = """\
pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1,
        "container_spec": {"image_uri": "us-docker.pkg.dev/acme/i/x:1", "args": ["--a=1"]}}
pools = [pool]
"""
SUBMIT = "aiplatform.CustomJob('job', pools).run()\n"


@pytest.fixture
def read(tmp_path: Path):
    """The jobs of a source by its name and text."""

    def jobs(text: str, name: str = "submit.py") -> list[ImportedJob]:
        (tmp_path / name).write_text(text)
        return sources.read(tmp_path / name).jobs

    return jobs


@pytest.fixture
def one(read):
    """The one job of Python code after the usual beginning."""

    def job(code: str, *, before: str = INIT + POOL) -> ImportedJob:
        [found] = read(before + code)
        return found

    return job


def told(job: ImportedJob) -> str:
    return "\n".join([*job.remarks, *map(str, job.notes)])


def first(job: ImportedJob) -> dict:
    return job.spec["workerPoolSpecs"][0]


def test_lists_and_mappings_that_grow_are_followed(one) -> None:
    job = one(
        "args = pool['container_spec']['args']\n"
        "args.append('--b=2')\nargs += ['--c=3']\nargs.extend(f'--{k}={v}' for k, v in "
        "{'d': 4}.items())\nargs.insert(0, '--z=0')\n"
        "pool['machine_spec'].update({'accelerator_type': 'NVIDIA_TESLA_T4'}, "
        "accelerator_count=2)\n"
        "worker = copy.deepcopy(pool)\nworker['replica_count'] = 3\npools.append(worker)\n" + SUBMIT
    )
    assert first(job)["containerSpec"]["args"] == ["--z=0", "--a=1", "--b=2", "--c=3", "--d=4"]
    assert first(job)["machineSpec"]["acceleratorCount"] == 2
    assert [each["replicaCount"] for each in job.spec["workerPoolSpecs"]] == [1, 3]
    assert not job.notes


@pytest.mark.parametrize(
    "code",
    [
        "pools.sort(key=len)\n",
        "pool['machine_spec'].unusual()\n",
        "add_gpu(pools)\n",
        "pool[unknown()] = 3\n",
        "pool.update(read_config())\n",
        "pools[0] = {**pool, **more}\n",
        "for size in sizes():\n    pool['replica_count'] = 2\n",
        "while waiting():\n    pools.append(pool)\n",
        "try:\n    check()\nexcept ValueError:\n    pool['replica_count'] = 2\n",
        "match size:\n    case 1:\n        pool['replica_count'] = 2\n",
        "del pools[unknown]\n",
        "def change():\n    pool['replica_count'] = size()\nchange()\n",
    ],
)
def test_what_touches_a_pool_and_is_not_evaluated_is_said_with_its_line(one, code) -> None:
    job = one(code + SUBMIT)
    if "size()" in code and "sizes" not in code:
        assert first(job)["replicaCount"] == "<YOUR_SIZE>"
    else:
        assert "(submit.py, line " in told(job).replace(job.remarks[0], "")


def test_a_branch_that_can_be_decided_is_read_alone(one) -> None:
    job = one(
        "NODES = 1\nif NODES == 0:\n    pools = []\nelif NODES > 0 and 'x' in ['x']:\n"
        "    pool['replica_count'] = 2\nelse:\n    pool['machine_spec'] = {}\n"
        "if not pools:\n    raise ValueError\n" + SUBMIT
    )
    assert first(job)["replicaCount"] == 2
    assert not job.notes


def test_the_last_branch_does_not_win_where_none_can_be_decided(one) -> None:
    job = one(
        "GPU = torch_is_here()\nmachine = pool['machine_spec']\n"
        "if GPU:\n    machine['accelerator_type'] = 'NVIDIA_TESLA_T4'\n"
        "else:\n    machine['machine_type'] = 'c2-standard-8'\n" + SUBMIT
    )
    assert first(job)["machineSpec"]["machineType"] == "<MACHINE_TYPE>"
    assert "machine_type is 'c2-standard-8' or 'n1-standard-4'" in told(job)
    assert "accelerator_type is only there by `if GPU`" in told(job)


def test_two_jobs_of_two_branches_are_both_there_with_the_condition(read) -> None:
    code = "if gpu():\n    job = aiplatform.CustomJob('a', pools)\nelse:\n"
    code += "    job = aiplatform.CustomJob('b', pools)\njob.run(timeout=60)\n"
    jobs = read(INIT + POOL + code)
    assert [job.name for job in jobs] == ["a", "b"]
    for job in jobs:
        assert job.spec["scheduling"] == {"timeout": "60s"}
    assert ["only `if gpu()`" in told(jobs[0]), "not `if gpu()`" in told(jobs[1])] == [True, True]


@pytest.mark.parametrize(
    ("count", "second", "said"),
    [
        ("options.nodes", 3, "4 is the default of --nodes"),
        ("int(os.environ.get('REPL', '2'))", 1, "'2' is the default of the environment's REPL"),
        ("os.environ['NUM_NODES']", "<NUM_NODES> - 1", ""),
        ("size_of_cluster()", "<SIZE_OF_CLUSTER> - 1", ""),
    ],
)
def test_a_number_of_replicas_that_is_not_known_is_not_one(one, count, second, said) -> None:
    job = one(
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--nodes', type=int, default='4')\noptions = parser.parse_args()\n"
        "aiplatform.CustomContainerTrainingJob('job', 'us-docker.pkg.dev/a/b/c:1').run("
        f"replica_count={count})\n"
    )
    assert [pool["replicaCount"] for pool in job.spec["workerPoolSpecs"]] == [1, second]
    assert said in told(job)


def test_defaults_of_options_are_read_and_said(one) -> None:
    job = one(
        "p = argparse.ArgumentParser()\ngroup = p.add_argument_group('x')\n"
        "group.add_argument('-m', '--machine-type', default='g2-standard-4')\n"
        "p.add_argument('--image', required=True)\np.add_argument('--account')\n"
        "p.add_argument('--spot', action='store_true')\np.add_argument('--big', action="
        "'store_true')\na, _ = p.parse_known_args()\n"
        "pool['machine_spec']['machine_type'] = a.machine_type\n"
        "pool['container_spec']['image_uri'] = a.image\n"
        "if a.big:\n    pool['disk_spec'] = {'boot_disk_size_gb': 500}\n"
        "aiplatform.CustomJob('job', pools).run(service_account=a.account,\n"
        "    scheduling_strategy='SPOT' if a.spot else None)\n"
    )
    assert first(job)["machineSpec"]["machineType"] == "g2-standard-4"
    assert first(job)["containerSpec"]["imageUri"] == "<YOUR_IMAGE>"
    assert job.spec["serviceAccount"] == "<YOUR_ACCOUNT>"
    assert "'g2-standard-4' is the default of --machine-type" in told(job)
    assert "False is the default of --big" in told(job)
    assert "scheduling" not in job.spec
    assert all(note.guessed for note in job.notes)


def test_options_of_typer_and_absl_are_read(read) -> None:
    for head, call in (
        ("def main(machine: str = typer.Option('n1-highmem-8')):\n", "typer.run(main)\n"),
        ("flags.DEFINE_string('m', 'n1-highmem-8', 'x')\nFLAGS = flags.FLAGS\n"
         "def main(_):\n    machine = FLAGS.m\n", "app.run(main)\n"),
    ):  # fmt: skip
        body = "    pool['machine_spec']['machine_type'] = machine\n    " + SUBMIT
        [job] = read(INIT + POOL + head + body + call)
        assert first(job)["machineSpec"]["machineType"] == "n1-highmem-8", head
        assert "'n1-highmem-8' is the default of" in told(job)


def test_the_arguments_of_a_call_win_over_the_defaults_of_its_function(one) -> None:
    job = one(
        "def launch(name, machine='n1-standard-4', epochs=9, **more):\n"
        "    pool['machine_spec']['machine_type'] = machine\n"
        "    pool['replica_count'] = 2 if epochs > 5 else 1\n"
        "    return aiplatform.CustomJob(name, pools, **more)\n"
        "launch('real', machine='n1-highmem-16', epochs=3, labels={'a': 'b'}).run()\n"
    )
    assert (job.name, job.labels) == ("real", {"a": "b"})
    assert first(job)["machineSpec"]["machineType"] == "n1-highmem-16"
    assert first(job)["replicaCount"] == 1


def test_a_function_that_nothing_calls_is_read_by_its_defaults(one) -> None:
    job = one("def create(project: str, machine: str = 'n1-highmem-8'):\n"
              "    pool['machine_spec']['machine_type'] = machine\n"
              "    aiplatform.CustomJob(project, pools).run()\n")  # fmt: skip
    assert job.name == "your-project"
    assert "the default of machine in create(), as nothing here calls it" in told(job)


def test_settings_in_a_class_of_the_code_are_read(one) -> None:
    job = one(
        "from dataclasses import dataclass\n@dataclass\nclass Config:\n    machine: str = 'a'\n"
        "    nodes: int = 1\nclass Launcher:\n    def __init__(self, config):\n"
        "        self.config = config\n    def go(self):\n"
        "        pool['machine_spec']['machine_type'] = self.config.machine\n"
        "        pool['replica_count'] = self.config.nodes\n        " + SUBMIT +
        "Launcher(Config(machine='n1-highmem-8')).go()\n"
    )  # fmt: skip
    assert first(job)["machineSpec"]["machineType"] == "n1-highmem-8"
    assert first(job)["replicaCount"] == 1


def test_experiment_private_network_region_and_unknown_options_are_not_dropped(one) -> None:
    job = one(
        "aiplatform.CustomJob('job', pools, location='europe-west4').run(experiment='e',\n"
        "    experiment_run='r', psc_interface_config={'network_attachment': 'n'}, tomorrow=1)\n"
    )
    assert job.spec["experiment"] == "e"
    assert job.spec["experimentRun"] == "r"
    assert job.spec["pscInterfaceConfig"] == {"networkAttachment": "n"}
    assert job.region == "europe-west4"
    assert "the client's option tomorrow is not read" in told(job)


def test_the_output_directory_is_the_one_that_the_client_makes(one) -> None:
    prefix = "gs://acme-staging/${job.name}/${job.requestId}"
    assert one(SUBMIT).spec["baseOutputDirectory"] == {"outputUriPrefix": prefix}
    job = one("aiplatform.CustomJob('job', pools, base_output_dir='gs://b/c').run()\n")
    assert job.spec["baseOutputDirectory"] == {"outputUriPrefix": "gs://b/c"}
    job = one(SUBMIT, before="from google.cloud import aiplatform\n" + POOL)
    assert "the source names no staging bucket" in told(job)


SEARCH = """\
inner = aiplatform.CustomJob('inner', pools)
aiplatform.HyperparameterTuningJob(
    display_name='search', custom_job=inner, metric_spec={'acc': 'maximize'},
    parameter_spec={'lr': hpt.DoubleParameterSpec(min=1e-3, max=0.1, scale='log'),
                    'n': hpt.DiscreteParameterSpec(values=[1, 2], scale=None),
                    'units': hpt.IntegerParameterSpec(8, 64, 'linear'),
                    'o': hpt.CategoricalParameterSpec(values=['a', 'b'])},
    max_trial_count=16, parallel_trial_count=NODES, search_algorithm='random').run()
"""


def test_a_search_is_a_tuning_job_and_what_it_runs_is_none(one) -> None:
    job = one(SEARCH)
    assert job.name == "search"
    assert first(job)["machineSpec"] == {"machineType": "n1-standard-4"}
    assert job.study["maxTrialCount"] == 16
    assert job.study["parallelTrialCount"] == "<YOUR_NODES>"
    assert job.study["studySpec"] == {
        "metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}],
        "parameters": [
            {
                "parameterId": "lr",
                "doubleValueSpec": {"minValue": 1e-3, "maxValue": 0.1},
                "scaleType": "UNIT_LOG_SCALE",
            },
            {"parameterId": "n", "discreteValueSpec": {"values": [1, 2]}},
            {
                "parameterId": "units",
                "integerValueSpec": {"minValue": 8, "maxValue": 64},
                "scaleType": "UNIT_LINEAR_SCALE",
            },
            {"parameterId": "o", "categoricalValueSpec": {"values": ["a", "b"]}},
        ],
        "algorithm": "RANDOM_SEARCH",
        "measurementSelectionType": "BEST_MEASUREMENT",
    }


def test_a_message_of_the_generated_client_is_read_beside_other_jobs(read) -> None:
    code = (
        "spec = {'display_name': 'ddp', 'job_spec': {'worker_pool_specs': pools}}\n"
        "client.create_custom_job(parent='projects/p/locations/europe-west1', custom_job=spec)\n"
        "from google.cloud.aiplatform_v1 import types\n"
        "job = types.CustomJob(display_name='typed', job_spec=types.CustomJobSpec(\n"
        "    worker_pool_specs=[types.WorkerPoolSpec(replica_count=2)]))\n"
        "client.create_custom_job(request={'parent': parent, 'custom_job': job})\n"
    )
    jobs = read(INIT + POOL + SUBMIT + code)
    assert [job.name for job in jobs] == ["job", "ddp", "typed"]
    assert jobs[1].region == "europe-west1"
    assert first(jobs[2]) == {"replicaCount": 2}


def test_parts_of_the_time_are_one_request_id(one) -> None:
    job = one("now = datetime.now()\nname = f'run-{now.year}{now.month:02d}-{now.hour}'\n"
              "pool['container_spec']['args'] = [f'--name=run-{datetime.now():%Y}', name]\n"
              + SUBMIT)  # fmt: skip
    assert first(job)["containerSpec"]["args"][0] == "--name=run-${job.requestId}"


def test_methods_of_texts_do_not_name_what_is_unknown(one) -> None:
    job = one(
        "b = os.environ['BUCKET'].replace('gs://', '')\n"
        "pool['container_spec']['args'] = [os.path.join('gs://x', 'a', b), '/'.join(['q', b]),\n"
        "    f'{7:03d}', '%s-%d' % ('n', 2), str(None), bucket.name]\n" + SUBMIT
    )
    assert first(job)["containerSpec"]["args"] == [
        "gs://x/a/<YOUR_BUCKET>", "q/<YOUR_BUCKET>", "007", "n-2", "None", "<BUCKET_NAME>",
    ]  # fmt: skip


def test_a_cell_with_a_command_in_a_block_is_read_and_notes_name_the_cell(read) -> None:
    cells = [
        INIT + POOL, "%%time\nif not os.path.exists('x'):\n    !pip install x \\\n      y\n"
        "else:\n    files = !ls\nN = 2", "pool['replica_count'] = N\nadd_gpu(pools)\n" + SUBMIT,
        "def broken(:",
    ]  # fmt: skip
    book = {"cells": [{"cell_type": "code", "source": [cell]} for cell in cells]}
    [job] = read(json.dumps(book), "book.ipynb")
    assert first(job)["replicaCount"] == 2
    assert "(book.ipynb, cell 3, line 2)" in told(job)


def test_gcloud_in_a_cell_has_the_names_of_the_notebook(read) -> None:
    cells = [
        "MACHINE = 'n1-standard-8'\nIMAGE = 'us-docker.pkg.dev/a/b/c:1'",
        "! gcloud ai custom-jobs create --region=us-central1 --display-name=cell \\\n"
        "  --worker-pool-spec=machine-type=$MACHINE,container-image-uri={IMAGE}",
    ]
    book = {"cells": [{"cell_type": "code", "source": cell} for cell in cells]}
    [job] = read(json.dumps(book), "book.ipynb")
    assert first(job) == {
        "replicaCount": 1,
        "machineSpec": {"machineType": "n1-standard-8"},
        "containerSpec": {"imageUri": "us-docker.pkg.dev/a/b/c:1"},
    }


SCRIPT = """\
#!/bin/bash
PROJECT=${PROJECT:-acme}
IMAGE="us-docker.pkg.dev/$PROJECT/r/x:$(git rev-parse HEAD)"
GPUS=1
if [ "$1" = big ]; then
  GPUS=8
fi
cat > cfg.yaml <<EOS
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-4}
  replicaCount: 1
  containerSpec: {imageUri: $IMAGE}
EOS
# gcloud ai custom-jobs create --display-name=comment
gcloud beta ai custom-jobs create --region=europe-west4 --display-name=job-$(date +%s) \\
  --worker-pool-spec=machine-type=n1-standard-8,replica-count=1,accelerator-type=nvidia-tesla-t4,\
accelerator-count=$GPUS,container-image-uri=$IMAGE \\
  --worker-pool-spec=machine-type=n1-standard-8,replica-count=$2,container-image-uri=$IMAGE \\
  --args=--epochs=3,--out=gs://acme-out/x --command=python --labels=team=a --tomorrow=1
gcloud ai custom-jobs create --region us-central1 --display-name second --config cfg.yaml && echo
"""


def test_lines_of_gcloud_in_a_script_are_jobs(read) -> None:
    job, second = read(SCRIPT, "run.sh")
    assert (job.name, job.region, job.labels) == ("job", "europe-west4", {"team": "a"})
    chief, workers = job.spec["workerPoolSpecs"]
    assert chief["machineSpec"]["acceleratorType"] == "NVIDIA_TESLA_T4"
    assert chief["machineSpec"]["acceleratorCount"] == 1
    assert chief["containerSpec"]["args"] == ["--epochs=3", "--out=gs://acme-out/x"]
    assert workers["replicaCount"] == "<ARG_2>"
    assert "GPUS is '1' unless a branch or loop sets it" in told(job)
    assert "'acme' is the default of PROJECT" in told(job)
    assert "gcloud's --tomorrow is not read" in told(job)
    assert first(second)["containerSpec"]["imageUri"] == "us-docker.pkg.dev/acme/r/x:<YOUR_HEAD>"


MAKEFILE = """\
REGION ?= us-central1
IMAGE := us-docker.pkg.dev/acme/r/x
TAG = $(shell git rev-parse HEAD)
submit: build
\t@gcloud ai custom-jobs create --region=$(REGION) --display-name=made \\
\t  --worker-pool-spec=machine-type=n1-standard-4,replica-count=1,container-image-uri=$(IMAGE):2
"""


def test_a_makefile_and_a_page_with_gcloud_are_read(read) -> None:
    [job] = read(MAKEFILE, "Makefile")
    assert first(job)["containerSpec"]["imageUri"] == "us-docker.pkg.dev/acme/r/x:2"
    assert "'us-central1' is the default of REGION" in told(job)
    [job] = read(f"# Guide\n\n```bash\n{SCRIPT.splitlines()[-1]}\n```\n", "guide.md")
    assert "gcloud reads cfg.yaml, which is not beside the source (guide.md, line 4)" in told(job)
    line = MAKEFILE.splitlines()[-1].strip().replace("$(IMAGE)", "a/b/c")
    page = f"Guide\n\n    gcloud ai custom-jobs create --display-name=x {line}\n\nEnd\n"
    assert first(read(page, "plain.md")[0])["containerSpec"] == {"imageUri": "a/b/c:2"}


TUNING = """\
studySpec:
  metrics: [{metricId: acc, goal: MAXIMIZE}]
  parameters: [{parameterId: lr, doubleValueSpec: {minValue: 0.1, maxValue: 1}}]
trialJobSpec:
  workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    replicaCount: 1
    containerSpec: {imageUri: us-docker.pkg.dev/a/b/c:1}
"""


def test_a_search_of_gcloud_has_the_counts_of_its_flags(read, tmp_path) -> None:
    (tmp_path / "hp.yaml").write_text(TUNING)
    line = "gcloud ai hp-tuning-jobs create --display-name=hp --config=hp.yaml --max-trial-count=8"
    [job] = read(f"#!/bin/sh\n{line} --algorithm=random-search\n", "tune.sh")
    assert (job.study["maxTrialCount"], job.study["parallelTrialCount"]) == (8, 1)
    assert job.study["studySpec"]["algorithm"] == "RANDOM_SEARCH"
    assert first(job)["machineSpec"] == {"machineType": "n1-standard-4"}
    [alone] = read(TUNING, "hp.yaml")
    assert (alone.study["maxTrialCount"], alone.study["parallelTrialCount"]) == (1, 1)
    assert "maxTrialCount is 1, as gcloud's flag is by default" in told(alone)


@pytest.mark.parametrize(
    "text",
    [
        "workerPoolSpecs: [{containerSpec: {env: 1.5}}]",
        "workerPoolSpecs: [{containerSpec: {env: true}}]",
        "jobSpec: [{}]",
        "workerPoolSpecs: !foo [1]",
        "workerPoolSpecs: [{replicaCount: !!python/object:os.system x}]",
        f"workerPoolSpecs: [{{replicaCount: {'9' * 6000}}}]",
        "? [a, b]\n: 1\nworkerPoolSpecs: []",
        "workerPoolSpecs: [{a: 1, a: 2}]",
    ],
)
def test_odd_yaml_is_read_or_refused_without_a_traceback(read, text) -> None:
    with contextlib.suppress(CommandError):
        assert read(text, "odd.yaml")


#: A piece of code that sets ``value``, and what it is in the job.
VALUES = {
    "value = '%03d-%s' % (7, 'a')": "007-a",
    "value = '{:03d}/{b}/{{x}}'.format(7, b='c')": "007/c/{x}",
    "value = '{a.b}'.format(a=args)": "<A_B>",
    "value = f'{7:>5}'": "<YOUR_VALUE>",
    'text = "a"\nvalue = f"{text:>5}"': "<YOUR_VALUE>",
    "value = ','.join(sorted(['b', 'a']))": "a,b",
    "value = sorted(['b', 'a'], key=f)[0]": "<YOUR_SORTED>",
    "value = max(['b', 'a'], key=f)": "<YOUR_MAX>",
    "for i, x in enumerate(['a'], 1):\n    value = f'{i}{x}'": "1a",
    "import config\nvalue = 'x' + config.BUCKET": "x<YOUR_BUCKET>",
    "value = aiplatform.gapic.AcceleratorType.NVIDIA_L4": "NVIDIA_L4",
    "def f():\n    global value\n    value = 'g'\nvalue = 'm'\nf()": "g",
    "value = 'a'\nfrom config import value": "<YOUR_VALUE>",
    "for value in ['a', 'b', 'c']:\n    if value == 'a':\n        continue\n    break": "b",
    "def f():\n    for x in ['a', 'b']:\n        return x\n    return 'c'\nvalue = f()": "a",
    "value = 'x' * 3": "xxx",
    "value = [x for x in ['a', 'b'] if x != 'a'][0]": "b",
    "value = {k: v for k, v in {'a': 'b'}.items()}['a']": "b",
    "value = (lambda: 'a')()": "<YOUR_VALUE>",
    "value = 'a' if unknown() else 'b'": "<THE_VALUE>",
    "value = 'gs://x/y'.split('/')[-1]": "y",
    "value = unknown()['key']": "<YOUR_KEY>",
    "with open('x') as f:\n    value = f.read()": "<YOUR_READ>",
}


@pytest.mark.parametrize(("code", "value"), VALUES.items())
def test_a_value_is_what_running_the_code_would_give_or_open(one, code, value) -> None:
    job = one(f"{code}\npool['container_spec']['args'] = [value]\n{SUBMIT}")
    assert first(job)["containerSpec"]["args"] == [value]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("for m in ['a', 'b']:\n    if there_is(m):\n        pool['x'] = m\n        break\n",
         "if there_is(m)"),
        ("p = argparse.ArgumentParser()\np.add_argument('--x', default='1')\n"
         "pool['x'] = p.parse_args(['--x', '2']).x\n", "are not read"),
        ("job = aiplatform.CustomJob('job', pools)\nsubmit(job)\n", "`submit(…)` gets it"),
    ],
)  # fmt: skip
def test_what_leaves_a_loop_or_is_given_away_is_said(one, code, said) -> None:
    job = one(code + ("" if "submit(" in code else SUBMIT))
    assert said in told(job)


def test_a_client_by_another_name_is_the_client(one) -> None:
    job = one("from google.cloud.aiplatform import CustomJob as Job\nJob('other', pools).run()\n")
    assert job.name == "other"


def test_a_function_that_is_handed_to_a_framework_is_read_before_what_it_calls(one) -> None:
    job = one(
        "def create(name):\n    aiplatform.CustomJob(name, pools).run()\n"
        "def main():\n    create('named')\nfire.Fire(main)\n"
    )
    assert job.name == "named"


def test_a_script_for_windows_is_read_to_its_last_flag(read) -> None:
    [job] = read("gcloud ai custom-jobs create ^\n  --display-name=%NAME% ^\n  --args=a ^\n  "
                 "--args=b ^\n  --worker-pool-spec=machine-type=n1-standard-4,"
                 "container-image-uri=a/b/c:1\n", "run.bat")  # fmt: skip
    assert first(job)["containerSpec"] == {"imageUri": "a/b/c:1", "args": ["a", "b"]}
