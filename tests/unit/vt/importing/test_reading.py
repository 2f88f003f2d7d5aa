"""Reading code without running it: what was not evaluated is a <NAME> or a line with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


def told(job: ImportedJob) -> str:
    return "\n".join([*job.remarks, *map(str, job.notes)])


def first(job: ImportedJob) -> dict:
    return job.spec["workerPoolSpecs"][0]


def test_two_jobs_of_two_branches_are_both_there_with_the_condition(read) -> None:
    code = "if gpu():\n    job = aiplatform.CustomJob('a', pools)\nelse:\n"
    code += "    job = aiplatform.CustomJob('b', pools)\njob.run(timeout=60)\n"
    jobs = read(INIT + POOL + code)
    assert [job.name for job in jobs] == ["a", "b"]
    for job in jobs:
        assert job.spec["scheduling"] == {"timeout": "60s"}
    assert ["only `if gpu()`" in told(jobs[0]), "not `if gpu()`" in told(jobs[1])] == [True, True]


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
