"""Forty shapes in which public code submits jobs, written anew: nothing of them is lost silently.

Each shape says which values are certain, and which words must be there for what is not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from vertex_training_cli.importing import sources
from vertex_training_cli.importing.imported import ImportedJob

HEAD = "from google.cloud import aiplatform\nimport argparse, os, time, json\n"
INIT = "aiplatform.init(project='acme', location='us-central1', staging_bucket='gs://acme-s')\n"
MACHINE = "'machine_spec': {'machine_type': 'n1-standard-4'}"
POOL = f"{{{MACHINE}, 'replica_count': 1, 'container_spec': {{'image_uri': 'a/b/c:1'}}}}"
GCLOUD = "gcloud ai custom-jobs create --region=us-central1 --display-name=j "
SPEC = "--worker-pool-spec=machine-type=n1-standard-4,replica-count=1,container-image-uri=a/b/c:1"


@dataclass(frozen=True)
class Shape:
    """A source; values by their path in the first job's spec; words of remarks; jobs there are."""

    text: str
    values: dict[str, Any]
    told: tuple[str, ...] = ()
    name: str = "submit.py"
    jobs: int = 1
    study: dict[str, Any] | None = None
    untold: tuple[str, ...] = ()


def code(text: str, values: dict[str, Any], *told: str, jobs: int = 1) -> Shape:
    return Shape(HEAD + INIT + text, values, told, jobs=jobs)


def shell(text: str, values: dict[str, Any], *told: str, jobs: int = 1) -> Shape:
    return Shape("#!/bin/bash\n" + text, values, told, "run.sh", jobs)


P0 = "workerPoolSpecs[0]."
C0, M0 = f"{P0}containerSpec.", f"{P0}machineSpec."
REPLICAS = f"{P0}replicaCount"
SHAPES = {
    "a list that is built by a helper and appended to": code(
        "def specs(kind, count, n):\n    machine = {'machine_type': 'n1-standard-8'}\n"
        "    if kind:\n        machine.update(accelerator_type=kind, accelerator_count=count)\n"
        "    pools = [{'machine_spec': machine, 'replica_count': 1, 'container_spec': "
        "{'image_uri': 'a/b/c:1'}}]\n    if n > 1:\n        pools.append({**pools[0], "
        "'replica_count': n - 1})\n    return pools\n"
        "aiplatform.CustomJob('j', specs('NVIDIA_TESLA_T4', 2, 4)).run()\n",
        {M0 + "acceleratorCount": 2, "workerPoolSpecs[1].replicaCount": 3},
    ),
    "pools from a settings file that is loaded": code(
        "cfg = yaml.safe_load(open('c.yaml'))\npools = []\nfor p in cfg.get('pools', [cfg]):\n"
        f"    pools.append({POOL})\naiplatform.CustomJob('j', pools).run()\n",
        {M0 + "machineType": "n1-standard-4"},
        "`for p in cfg.get('pools', [cfg])`, which cannot be decided",
    ),
    "workers by a number from argparse": code(
        "p = argparse.ArgumentParser()\np.add_argument('--workers', type=int, default=2)\n"
        f"a = p.parse_args()\npools = [{POOL}]\nif a.workers > 1:\n"
        f"    pools.append(dict({POOL}, replica_count=a.workers - 1))\n"
        "aiplatform.CustomJob(display_name='j', worker_pool_specs=pools).run(sync=False)\n",
        {"workerPoolSpecs[1].replicaCount": 1},
        "2 is the default of --workers",
    ),
    "a conditional expression for an accelerator": code(
        "gpu = os.environ.get('GPU')\naiplatform.CustomJob('j', [{'machine_spec': {"
        "'machine_type': 'n1-standard-4', 'accelerator_type': gpu if gpu else None, "
        "'accelerator_count': 1 if gpu else 0}, 'replica_count': 1, 'container_spec': "
        "{'image_uri': 'a/b/c:1'}}]).run()\n",
        {M0 + "acceleratorCount": 0},
        "GPU is taken as not given",
    ),
    "pools by the classes of the generated client": Shape(
        "from google.cloud.aiplatform_v1.types import CustomJob, CustomJobSpec, WorkerPoolSpec, "
        "MachineSpec, ContainerSpec, DiskSpec\nspec = WorkerPoolSpec(machine_spec=MachineSpec("
        "machine_type='n1-standard-4'), replica_count=1, disk_spec=DiskSpec(boot_disk_size_gb=200),"
        " container_spec=ContainerSpec(image_uri='a/b/c:1'))\nspecs: list = [spec]\n"
        "job = CustomJob(display_name='j', job_spec=CustomJobSpec(worker_pool_specs=specs, "
        "base_output_directory={'output_uri_prefix': out}))\n"
        "client.create_custom_job(parent=f'projects/p/locations/{R}', custom_job=job)\n",
        {P0 + "diskSpec.bootDiskSizeGb": 200, "baseOutputDirectory.outputUriPrefix": "<YOUR_OUT>"},
    ),
    "a message of mappings with a scheduling of its own": Shape(
        "spec = {'service_account': cfg.account, 'worker_pool_specs': [" + POOL + "], "
        "'scheduling': {'strategy': 'SPOT', 'timeout': {'seconds': 60}}}\n"
        "client().create_custom_job(parent=parent, custom_job={'display_name': 'j', "
        "'labels': tags(2), 'job_spec': spec})\n",
        {"serviceAccount": "<YOUR_ACCOUNT>", "scheduling.strategy": "SPOT"},
    ),
    "a message with an environment by a comprehension": Shape(
        "env = {'A': 1}\nenv.update(read_env())\nspec = {'worker_pool_specs': [{" + MACHINE + ", "
        "'replica_count': 1, 'container_spec': {'image_uri': 'a/b/c:1', 'env': [{'name': k, "
        "'value': str(v)} for k, v in env.items()]}}]}\n"
        "client.create_custom_job(parent=p, custom_job={'display_name': 'j', 'job_spec': spec})\n",
        {C0 + "env[0].value": "1"},
        "`read_env()` is not read",
    ),
    "settings from another module": code(
        "import config\naiplatform.CustomContainerTrainingJob(display_name='j', "
        "container_uri=image).run(machine_type=config.MACHINE, replica_count=1, "
        "accelerator_type=config.accelerator, accelerator_count=1, scheduling_strategy="
        "aiplatform.compat.types.custom_job.Scheduling.Strategy.SPOT)\n",
        {M0 + "machineType": "<YOUR_MACHINE>", "scheduling.strategy": "SPOT"},
    ),
    "environment variables with a token of the settings": code(
        "aiplatform.CustomContainerTrainingJob('j', 'a/b/c:1').run(replica_count=1, "
        "environment_variables={'HF_TOKEN': cfg['hf']['token'], 'BETA': cfg['beta']})\n",
        {C0 + "env[0].value": "<YOUR_TOKEN>", C0 + "env[1].value": "<YOUR_BETA>"},
    ),
    "arguments that are only added for a parameter": code(
        "def launch(epochs=3, most=None):\n    args = [f'--epochs={epochs}']\n    if most:\n"
        "        args.append(f'--most={most}')\n    aiplatform.CustomContainerTrainingJob('j', "
        "'a/b/c:1').run(args=args)\nlaunch(epochs=5)\n",
        {C0 + "args[0]": "--epochs=5"},
    ),
    "the same function, that nothing calls": code(
        "def launch(epochs=3, most=None):\n    args = [f'--epochs={epochs}']\n    if most:\n"
        "        args.append(f'--most={most}')\n    aiplatform.CustomContainerTrainingJob('j', "
        "'a/b/c:1').run(args=args)\n",
        {C0 + "args[0]": "--epochs=3"},
        "most is taken as not given", "the default of epochs in launch()",
    ),
    "options of a machine by a name of the run": code(
        "machines = {'cpu': {'machine_type': 'n1-standard-4'}, 'gpu': {'machine_type': 'g2'}}\n"
        "which = pick()\naiplatform.CustomContainerTrainingJob('j', 'a/b/c:1').run("
        "replica_count=1, **machines[which])\n",
        {M0 + "machineType": "n1-standard-4"},
        "`**machines[which]` is not read",
    ),
    "keyword arguments that are collected first": code(
        "kw = {'display_name': 'j', 'script_path': 't.py', 'container_uri': 'a/b/c:1'}\n"
        "if extra:\n    kw['requirements'] = extra\nif kind():\n    kw['accelerator_type'] = "
        "kind()\n    kw['accelerator_count'] = 1\njob = aiplatform.CustomJob.from_local_script("
        "**kw)\nrun = {'sync': False}\nif strategy == 'SPOT':\n    run['scheduling_strategy'] = "
        "'SPOT'\njob.run(**run)\n",
        {M0 + "acceleratorType": "<YOUR_KIND>", "scheduling.strategy": "SPOT"},
        "accelerator_type is only there by `if kind()`", "by `if strategy == 'SPOT'`",
        "requirements is only there by `if extra`",
    ),
    "a file of YAML in a text, and another job": code(
        "config = '''\njobSpec:\n  workerPoolSpecs: []\n'''\nopen('x', 'w').write(config)\n"
        "aiplatform.CustomJob.from_local_script(display_name='j', script_path='s.py', "
        "container_uri='a/b/c:1', machine_type='n1-standard-4').run()\n",
        {M0 + "machineType": "n1-standard-4"},
    ),
    "an experiment of a function's parameters": Shape(
        "def create(project: str, bucket: str, name: str, account: str, experiment: str, run=None"
        "):\n    aiplatform.init(project=project, staging_bucket=bucket)\n    job = "
        "aiplatform.CustomJob.from_local_script(display_name=name, script_path='s', container_uri="
        "'a/b/c:1', enable_autolog=True)\n    job.run(service_account=account, experiment="
        "experiment, experiment_run=run)\n",
        {"experiment": "<YOUR_EXPERIMENT>", "experimentRun": "<YOUR_RUN>"},
        ("enable_autolog is left out",),
    ),
    "settings of a class that the command line fills": code(
        "class C(BaseModel):\n    machine: str = Field('n1-standard-4')\n    name: str | None = "
        "None\ndef run(config):\n    name = config.name or f'train-{config.machine}'\n    "
        "aiplatform.CustomJob.from_local_script(display_name=name, script_path='s.py', "
        "container_uri='a/b/c:1', machine_type=config.machine).run()\nrun(tyro.cli(C))\n",
        {M0 + "machineType": "<YOUR_MACHINE>"},
    ),
    "two parsers, one after the other": code(
        "p = argparse.ArgumentParser()\np.add_argument('--model', required=True)\n"
        "p.add_argument('--name', type=str)\na, rest = p.parse_known_args()\nif a.name:\n    "
        "q = argparse.ArgumentParser()\n    q.add_argument('--size', type=int, default=100)\n    "
        "b = q.parse_args(rest)\n    aiplatform.CustomJob.from_local_script(display_name=a.name, "
        "script_path='s.py', container_uri='a/b/c:1', boot_disk_size_gb=b.size).run()\nelse:\n    "
        f"aiplatform.CustomJob(a.model, [{POOL}]).run()\n",
        {M0 + "machineType": "n1-standard-4"},
        "name is taken as not given", "`from_local_script(…)` is left out",
    ),
    "a search with its job inside of the call": code(
        "hp = aiplatform.HyperparameterTuningJob(display_name='j', custom_job=aiplatform.CustomJob("
        f"display_name='t', worker_pool_specs=[{POOL}]), metric_spec={{'r2': 'maximize'}}, "
        "parameter_spec={'n': hpt.IntegerParameterSpec(min=5, max=9, scale='UNIT_LINEAR_SCALE')}, "
        "max_trial_count=4, parallel_trial_count=4)\nhp.run()\nhp.wait()\n",
        {M0 + "machineType": "n1-standard-4"},
    ),
    "a search without its job": code(
        "aiplatform.HyperparameterTuningJob(display_name='j', metric_spec={'a': 'maximize'}, "
        "parameter_spec={'lr': hpt.DoubleParameterSpec(min=0.1, max=1, scale='log')}, "
        "max_trial_count=20, parallel_trial_count=5)\n",
        {},
        "the job of the trials is not read",
    ),
    "a search over a method of a class": code(
        f"class T:\n    def __init__(self, n):\n        self.pools = [{POOL}]\n        self.n = n\n"
        "    def tune(self):\n        job = aiplatform.CustomJob(display_name='t', "
        "worker_pool_specs=self.pools)\n        aiplatform.HyperparameterTuningJob('j', job, "
        "{'a': 'maximize'}, {'b': hpt.DiscreteParameterSpec(values=[1, 2])}, self.n, 2).run()\n"
        "T(8).tune()\n",
        {M0 + "machineType": "n1-standard-4"},
    ),
    "a package job that no one runs, beside a search": code(
        "aiplatform.CustomPythonPackageTrainingJob(display_name='p', python_package_gcs_uri='gs://b"
        "/p.zip', python_module_name='p.t', container_uri='a/b/c:1')\njob = aiplatform.CustomJob("
        f"'t', [{POOL}])\naiplatform.HyperparameterTuningJob('j', job, {{'a': 'maximize'}}, "
        "spec(), 4, 2).run()\n",
        {P0 + "pythonPackageSpec.pythonModule": "p.t"},
        "nothing that was read runs this job",
        jobs=2,
    ),
    "a job for each item of a list": code(
        f"for seed in [1, 2, 3]:\n    aiplatform.CustomJob(f'j{{seed}}', [{POOL}]).submit()\n",
        {REPLICAS: 1},
        jobs=3,
    ),
    "a job for each item of what is not known": code(
        f"for seed in seeds():\n    aiplatform.CustomJob(f'j{{seed}}', [{POOL}]).submit()\n",
        {REPLICAS: 1},
        "only `for seed in seeds()`",
    ),
    "a job in a try with a fallback": code(
        f"try:\n    job = aiplatform.CustomJob('j', [{POOL}])\n    job.run()\n"
        "except Exception as failed:\n    print(failed)\n    raise\n",
        {REPLICAS: 1},
    ),
    "a handler that changes the machine": code(
        f"pools = [{POOL}]\ntry:\n    check()\nexcept QuotaError:\n    pools[0]['machine_spec']"
        "['machine_type'] = 'n1-standard-8'\naiplatform.CustomJob('j', pools).run()\n",
        {M0 + "machineType": "<MACHINE_TYPE>"},
        "'n1-standard-4' or 'n1-standard-8'",
    ),
    "a command of the shell with a program in it": code(
        "CMD = ['bash', '-c', f'''python t.py --out={os.environ[\"OUT\"]} && echo done''']\n"
        f"pool = {POOL}\npool['container_spec']['command'] = CMD\n"
        "aiplatform.CustomJob('j', [pool], base_output_dir=f'gs://b/{int(time.time())}').run()\n",
        {C0 + "command[2]": "python t.py --out=<YOUR_OUT> && echo done",
         "baseOutputDirectory.outputUriPrefix": "gs://b/${job.requestId}"},
    ),
    "gcloud by subprocess": code(
        "import subprocess\nimage = 'a/b/c:1'\nsubprocess.run(['gcloud', 'ai', 'custom-jobs', "
        "'create', '--region=us-east1', f'--display-name=j', '--worker-pool-spec=machine-type="
        "n1-standard-4,replica-count=1,container-image-uri=' + image], check=True)\n",
        {C0 + "imageUri": "a/b/c:1"},
    ),
    "a line of gcloud for a shell by subprocess": code(
        "import subprocess\nsubprocess.run(['bash', '-c', 'gcloud ai custom-jobs create "
        "--display-name=j --worker-pool-spec=machine-type=n1-standard-4,container-image-uri="
        "a/b/c:1'], check=True)\n",
        {C0 + "imageUri": "a/b/c:1"},
    ),
    "a loop of seeds in a script, with a file that is not there": shell(
        "for i in 0 1 2; do\n  SEED=$i\n  gcloud ai custom-jobs create --region=us-central1 "
        "--display-name=\"c-${SEED}\" --config=v.yaml --args=\"solve,--seed,${SEED}\"\ndone\n",
        {},
        "made in a branch or loop", "gcloud reads v.yaml",
        "its pools gets --args=solve,--seed,<YOUR_SEED>",
    ),
    "an alpha command with two pools": shell(
        f"gcloud alpha ai custom-jobs create --display-name=j {SPEC} {SPEC}\n",
        {"workerPoolSpecs[1].replicaCount": 1},
    ),
    "a local package": shell(
        GCLOUD + "--worker-pool-spec=machine-type=n1-standard-8,replica-count=1,executor-image-uri="
        "a/b/c:1,local-package-path=.,script=t.py\n",
        {C0 + "imageUri": "<YOUR_IMAGE>"},
        "gcloud builds an image of .",
    ),
    "an option that gcloud does not have": shell(
        GCLOUD + SPEC + " --env-vars=A=1,B=2 --args=\"--\"\n",
        {M0 + "machineType": "n1-standard-4"},
        "gcloud's --env-vars is not read",
    ),
    "an account by a variable that a branch sets": shell(
        'if [ -z "$SA" ]; then\n  SA_ARG=""\nelse\n  SA_ARG="--service-account=$SA"\nfi\n'
        + GCLOUD + SPEC + " $SA_ARG\n",
        {REPLICAS: 1},
        "<SA_ARG>",
    ),
    "options of a script by getopts": shell(
        "MACHINE=n1-standard-4\nwhile getopts m: o; do\n  case $o in m) MACHINE=$OPTARG;; esac\n"
        "done\n" + GCLOUD + SPEC.replace("n1-standard-4", "$MACHINE") + "\n",
        {M0 + "machineType": "n1-standard-4"},
        "MACHINE is 'n1-standard-4' unless a branch or loop sets it",
    ),
    "a project of the configuration": shell(
        "PROJECT=$(gcloud config get-value project)\n" + GCLOUD
        + SPEC.replace("a/b", "gcr.io/${PROJECT}") + "\n",
        {C0 + "imageUri": "gcr.io/<YOUR_PROJECT>/c:1"},
    ),
    "arguments in an array": shell(
        "ARGS=(--display-name=j --region=us-central1)\nif $BIG; then\n  ARGS+=(--enable-web-access)"
        f"\nfi\ngcloud ai custom-jobs create \"${{ARGS[@]}}\" {SPEC}\n",
        {REPLICAS: 1},
        "unless a branch or loop sets it",
    ),
    "searches of several regions": Shape(
        "".join(f"gcloud ai hp-tuning-jobs create --region={region} --display-name=t --max-trial-"
                "count=90 --parallel-trial-count=10 --config=c.yaml\n"
                for region in ("us-east1", "us-west1")),
        {}, ("gcloud reads c.yaml",), "tune.sh", 2, {"maxTrialCount": 90},
    ),
    "a page with gcloud's line and dots": Shape(
        f"# Page\n\n```bash\n# the idea\ngcloud ai custom-jobs create --worker-pool-spec=...\n```\n"
        f"\n```bash\n{GCLOUD}{SPEC}\n```\n", {}, name="page.md", jobs=2,
    ),
    "a Makefile with a recipe of several lines": Shape(
        f"IMAGE ?= a/b/c:1\nrun:\n\t{GCLOUD} \\\n\t\t--worker-pool-spec=machine-type=n1-standard-4,"
        "container-image-uri=$(IMAGE)\n", {C0 + "imageUri": "a/b/c:1"},
        ("'a/b/c:1' is the default of IMAGE",), "Makefile",
    ),
    "a notebook with a command in a loop": Shape(
        json.dumps({"cells": [{"cell_type": "code", "source": each} for each in (
            HEAD + INIT, f"if not os.getenv('T'):\n    ! pip install x\nN = 2\npools = [{POOL}]",
            "pools[0]['replica_count'] = N\naiplatform.CustomJob('j', pools).run()")]}),
        {REPLICAS: 2}, name="n.ipynb",
    ),
    "a pool in a file of YAML with an environment as a mapping": Shape(
        "workerPoolSpecs:\n- machineSpec: {machineType: n1-standard-4}\n  replicaCount: 1\n"
        "  containerSpec: {imageUri: a/b/c:1, env: {A: 1}}\n", {C0 + "env.A": "1"},
        name="v.yaml",
    ),
}  # fmt: skip


def at(spec: Any, path: str) -> Any:
    for part in path.replace("[", ".[").split("."):
        spec = spec[int(part[1:-1])] if part.startswith("[") else spec[part]
    return spec


def read(shape: Shape, folder: Path) -> list[ImportedJob]:
    (folder / shape.name).write_text(shape.text)
    return sources.read(folder / shape.name).jobs


def test_there_are_forty_shapes() -> None:
    assert len(SHAPES) >= 40


def hold(shape: Shape, folder: Path) -> None:
    """Assert that a shape is read as it says."""
    jobs = read(shape, folder)
    assert len(jobs) == shape.jobs, jobs
    for path, value in shape.values.items():
        assert at(jobs[0].spec, path) == value, path
    for key, value in (shape.study or {}).items():
        assert jobs[0].study[key] == value
    remarks = sources.read(folder / shape.name).remarks
    said = [*remarks, *(x for job in jobs for x in (*job.remarks, *map(str, job.notes)))]
    for words in shape.told:
        assert any(words in each for each in said), "\n".join(said)
    for words in shape.untold:
        assert not any(words in each for each in said), "\n".join(said)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_public_shape_is_read_or_it_is_said_what_is_not(tmp_path: Path, shape: Shape) -> None:
    hold(shape, tmp_path)
