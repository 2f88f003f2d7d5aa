"""Shapes of 49 more public files, written anew: each was read wrongly, or refused without a reason.

They are what somebody found who did not write the reader.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.vt.importing.test_public_shapes import (
    C0,
    GCLOUD,
    HEAD,
    M0,
    P0,
    POOL,
    REPLICAS,
    SPEC,
    Shape,
    code,
    hold,
    shell,
)
from vertex_training_cli.importing import proposal, sources

CONFIG = (
    "workerPoolSpecs:\n- {machineSpec: {machineType: n1-standard-4}, replicaCount: 1, "
    "containerSpec: {imageUri: a/b/c:1, args: [old]}}\n"
)
TRAINING = "aiplatform.CustomContainerTrainingJob('j', 'a/b/c:1')"
SUBMIT = "['gcloud', 'ai', 'custom-jobs', 'create', '--display-name=j', '" + SPEC + "']"
PARSER = (
    "p = argparse.ArgumentParser()\np.add_argument('--{0}', action='store_true')\n"
    "a = p.parse_args()\n"
)
SHAPES = {
    "a text that is appended to a variable, without a space": shell(
        "S=machine-type=n1-standard-4\nS+=\",replica-count=2\"\nS+=,container-image-uri=a/b/c:1\n"
        + GCLOUD + "--worker-pool-spec=\"$S\"\n",
        {M0 + "machineType": "n1-standard-4", REPLICAS: 2},
    ),
    "quotes inside of a variable's value": shell(
        'RUN="pip install \'x @ z\' && python -c \\"import a; a.b(\'$HOME\')\\" && python t.py"\n'
        + GCLOUD + SPEC + " --command=bash,-c --args=\"$RUN\"\n",
        {C0 + "args[0]": "pip install 'x @ z' && python -c \"import a; a.b('<YOUR_HOME>')\""
                         " && python t.py"},
    ),
    "escapes in a file that a script writes": shell(
        "cat > c.yaml <<EOF\nworkerPoolSpecs:\n- machineSpec: {machineType: n1-standard-4}\n"
        "  replicaCount: 1\n  containerSpec:\n    imageUri: a/b/c:1\n    command:\n    - |\n"
        "      run \\\\\n        --t=\\$CLOUD_ML_TRIAL_ID\nEOF\n" + GCLOUD + "--config=c.yaml\n",
        {C0 + "command[0]": "run \\\n  --t=$CLOUD_ML_TRIAL_ID\n"},
    ),
    "arguments beside a file": shell(
        f"cat > c.yaml <<EOF\n{CONFIG}EOF\n{GCLOUD}--config=c.yaml --args=--seed,7\n",
        {C0 + "args": ["--seed", "7"]},
    ),
    "arguments beside a file in snake case": shell(
        "cat > c.yaml <<EOF\nworker_pool_specs:\n- container_spec: {image_uri: a/b/c:1}\nEOF\n"
        f"{GCLOUD}--config=c.yaml --args=--seed,7\n",
        {P0 + "containerSpec": {"imageUri": "a/b/c:1"}},
        "leaves out --args",
    ),
    "a file that echo writes, over several lines": shell(
        f"O=gs://b/o\necho > ./c.yaml \"{CONFIG}baseOutputDirectory:\n  outputUriPrefix: $O\"\n\n"
        f"{GCLOUD} \\\n  --config=c.yaml\n",
        {M0 + "machineType": "n1-standard-4", "baseOutputDirectory.outputUriPrefix": "gs://b/o"},
    ),
    "a command that a script only prints": shell(
        f"cat > c.yaml <<EOF\n{CONFIG}EOF\necho \"{GCLOUD} --display-name=\\\"My Job\\\" "
        "--config=c.yaml\"\n",
        {M0 + "machineType": "n1-standard-4"},
        "prints this command",
    ),
    "a command with its output sent elsewhere": shell(
        f"OUT=$({{ {GCLOUD}{SPEC} 2>&1 >/dev/null; }})\n", {REPLICAS: 1},
    ),
    "Python that a script runs": shell(
        f"python - \"$1\" <<'PY'\nimport subprocess\nc = {SUBMIT}\nsubprocess.run(c)\nPY\n",
        {M0 + "machineType": "n1-standard-4"},
    ),
    "a search by a file with counts in both": Shape(
        "cat > c.yaml <<EOF\nstudySpec: {}\nmaxTrialCount: 9\ntrialJobSpec: {workerPoolSpecs: []}\n"
        "EOF\ngcloud ai hp-tuning-jobs create --display-name=t --config=c.yaml "
        "--parallel-trial-count=3\n",
        {}, (), "t.sh", 1, {"maxTrialCount": "9", "parallelTrialCount": 3}, ("is 1, as gcloud's",),
    ),
    "a search by a file that is not there": Shape(
        "gcloud ai hp-tuning-jobs create --display-name=t --config=c.yaml\n",
        {}, (), "t.sh", 1, {"maxTrialCount": "<MAX_TRIAL_COUNT>"},
    ),
    "a program that ends by raising what its main function returns": code(
        f"import subprocess\ndef main():\n    cmd = {SUBMIT}\n    subprocess.check_call(cmd)\n"
        "    return 0\nif __name__ == '__main__':\n    raise SystemExit(main())\n",
        {M0 + "machineType": "n1-standard-4"},
    ),
    "a program that ends where a variable has no value": code(
        f"import subprocess, sys\nP = os.environ.get('P', '')\ndef submit():\n    cmd = {SUBMIT}\n"
        "    subprocess.run(cmd)\ndef main():\n    if not P:\n        sys.exit(1)\n    submit()\n"
        "main()\n",
        {M0 + "machineType": "n1-standard-4"},
    ),
    "a strategy that only an option sets": code(
        PARSER.format("spot") + "s = None\nif a.spot:\n    s = 'SPOT'\n"
        f"{TRAINING}.run(replica_count=1, scheduling_strategy=s)\n",
        {REPLICAS: 1},
        "False is the default of --spot",
    ),
    "a job that only an option makes": code(
        PARSER.format("train") + f"if a.train:\n    {TRAINING}.run(replica_count=1)\n",
        {REPLICAS: 1},
        "only `if a.train`",
    ),
    "a job behind another choice": code(
        f"c = input()\nif c == '1':\n    print()\nelif c == '2':\n    {TRAINING}.run()\n",
        {REPLICAS: 1},
        "not `if c == '1'`", "only `if c == '2'`",
    ),
    "a component of a pipeline": code(
        "@dsl.component(base_image='x')\ndef tune(name: str = 'j'):\n"
        f"    import google.cloud.aiplatform\n    {TRAINING}.run(machine_type='g2-standard-4')\n",
        {M0 + "machineType": "g2-standard-4"},
    ),
    "a function that another one calls, which nothing calls": code(
        f"def launch(n):\n    {TRAINING}.run(replica_count=n)\ndef train(config):\n"
        "    launch(n=config.nodes)\n",
        {"workerPoolSpecs[1].replicaCount": "<YOUR_NODES> - 1"},
    ),
    "a command inside of a line of a page": Shape(
        f"# Page\n\n1. Train by `{GCLOUD}{SPEC}`, or not.\n", {M0 + "machineType": "n1-standard-4"},
        name="page.md",
    ),
    "a notebook's cell that writes a file by echo": Shape(
        json.dumps({"cells": [{"cell_type": "code", "source":
            f"%%bash\nM=n1-standard-8\necho \"{CONFIG.replace('n1-standard-4', '$M')}\" > c.yaml\n"
            f"{GCLOUD}--config=c.yaml"}]}),
        {M0 + "machineType": "n1-standard-8", P0 + "replicaCount": "1"}, name="n.ipynb",
    ),
    "an accelerator without its number, which the client leaves out": code(
        f"{TRAINING}.run(accelerator_type='NVIDIA_TESLA_T4')\n",
        {P0 + "machineSpec": {"machineType": "n1-standard-4"},
         P0 + "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}},
    ),
    "servers for a reduction": code(
        f"{TRAINING}.run(replica_count=1, reduction_server_replica_count=2)\n", {REPLICAS: 1},
        "option reduction_server_replica_count is not read",
    ),
    "a pool in a function that gets it by position": code(
        f"aiplatform.CustomJob('j', [{POOL}], 'gs://b/o', 'p', 'europe-west4').run()\n",
        {"baseOutputDirectory.outputUriPrefix": "gs://b/o"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_shape_that_was_read_wrongly_is_read_or_said(tmp_path: Path, shape: Shape) -> None:
    hold(shape, tmp_path)


def test_where_a_job_is_sent_is_said_without_a_stack(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_text(f"#!/bin/sh\n{GCLOUD}{SPEC}\n")
    made = proposal.propose(sources.read(tmp_path / "s.sh"), tmp_path, tmp_path)
    assert "it is sent to us-central1, which a job file does not say" in made.jobs[0].remarks


def test_without_a_stack_a_script_that_is_not_here_is_no_empty_file(tmp_path: Path) -> None:
    made_by = "aiplatform.CustomTrainingJob('j', 'train/task.py', 'a/b/c:1')"
    (tmp_path / "s.py").write_text(f"{HEAD}{made_by}.run()\n")
    source = sources.read(tmp_path / "s.py")
    source.uploads["acme-data/in.csv"] = b"1"
    made = proposal.propose(source, tmp_path, tmp_path)
    assert "is a placeholder" in str(made.files["jobs/j/task.py"])
    assert any("train/task.py is not here" in remark for remark in made.jobs[0].remarks)
    assert "gs://acme-data/in.csv, which the code uploads, is not taken along" in made.remarks
