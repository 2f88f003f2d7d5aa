"""How tutorials submit jobs, as they stand: each becomes a job, or it is said why not.

One command each, `vt import SOURCE --fix`. The shapes are of tutorials, the values of our own.
"""

from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app

STACK = """\
config:
  gcp:project: local-demo
  gcp:region: us-central1
  vertex-training:projectNumber: "559118266482"
"""
INIT = "from google.cloud import aiplatform\naiplatform.init(project='acme-ml', location='x')\n"
GPU = "'machine_type': 'a2-highgpu-8g', 'accelerator_type': 'NVIDIA_TESLA_A100', "
IMAGE = "'container_spec': {'image_uri': 'us-docker.pkg.dev/acme-ml/x/train:1'}"


def sdk(*entries):
    pool = ", ".join((f"'machine_spec': {{{GPU}'accelerator_count': 8}}", IMAGE, *entries))
    return (
        f"{INIT}job = aiplatform.CustomJob(display_name='nodes', worker_pool_specs=[{{{pool}}}])\n"
    )


def yaml(pools, *, mapping=False):
    lines = [f"  {line}" if mapping else line for line in pools.splitlines()]
    return "workerPoolSpecs:\n" + "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Tutorial:
    """A source, the exit code of its import, and what has to be said or shown."""

    name: str
    source: str
    code: int
    told: tuple[str, ...]
    unsaid: tuple[str, ...] = ()


SPLIT = ("+  - replicaCount: 1", "+  - replicaCount: 3")
TUTORIALS = {
    "a reservation of any kind, a script in a bucket": Tutorial(
        "attention.py",
        INIT + "job = aiplatform.CustomJob(display_name='attention', worker_pool_specs=[{"
        "'replica_count': 1, 'machine_spec': {'machine_type': 'a3-megagpu-8g', "
        "'accelerator_type': 'NVIDIA_H100_MEGA_80GB', 'accelerator_count': 8, "
        "'reservation_affinity': {'reservation_affinity_type': 'ANY'}}, 'container_spec': {"
        "'image_uri': 'us-docker.pkg.dev/acme-ml/x/y:1', 'command': ['python3', "
        "'/gcs/acme-in/train.py']}}], staging_bucket='gs://acme-in')\njob.submit()\n",
        0,
        ("ANY_RESERVATION", "which is not beside the source", "1 of the source's mistakes"),
    ),
    "gcloud's file with a shell script and tokens": Tutorial(
        "vertex.yaml",
        yaml(
            "- machineSpec: {machineType: g2-standard-4, acceleratorType: NVIDIA_L4, "
            "acceleratorCount: 1}\n  replicaCount: 1\n  containerSpec:\n"
            "    imageUri: us-docker.pkg.dev/acme-ml/x/y:1\n    command: [bash, -c]\n"
            "    args:\n    - |\n      python train.py\n      gsutil cp -r out gs://$BUCKET\n"
            "    env:\n    - {name: HF_TOKEN, value: <YOUR_HF_TOKEN>}\n"
            "    - {name: BUCKET, value: <YOUR_BUCKET>}\n"
        ),
        0,
        ("the name of secret 'hf-token'", "script-goes-on", "is new and empty"),
    ),
    "a training job of the client, on CPUs": Tutorial(
        "titanic.py",
        INIT + "job = aiplatform.CustomTrainingJob(display_name='titanic', "
        "script_path='src/train.py', container_uri="
        "'us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest')\n"
        "job.run(machine_type='n1-standard-4', replica_count=1)\n",
        0,
        ("the script src/train.py is not here: put it at",),
    ),
    "the same on a GPU whose name lacks its maker's": Tutorial(
        "titanic.py",
        INIT + "job = aiplatform.CustomTrainingJob(display_name='titanic', "
        "script_path='src/train.py', container_uri="
        "'us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest')\n"
        "job.run(machine_type='a2-highgpu-1g', accelerator_type='NVIDIA_A100_40GB', "
        "accelerator_count=1, replica_count=1)\n",
        0,
        ("NVIDIA_TESLA_A100", "the script src/train.py is not here"),
    ),
    "four nodes in one pool, with a secret": Tutorial(
        "nodes.py",
        sdk("'replica_count': 4").replace(
            "train:1'}",
            "train:1', 'command': ['python', 't.py'], 'env': [{'name': 'WANDB_API_KEY', "
            "'value': 'k'}]}",
        ),
        0,
        (*SPLIT, "the name of secret 'wandb-api-key'"),
    ),
    "a network and its ranges inside of a pool": Tutorial(
        "vpc.py",
        sdk(
            "'replica_count': 4",
            "'network': 'projects/PROJECT_ID/global/networks/n'",
            "'reserved_ip_ranges': ['10.0.0.0/20']",
        ),
        1,
        (*SPLIT, "network: needs the project's number", "[range-name]", "3 of the source's"),
        ("misplaced-field", "chief-replicas"),
    ),
    "a shared network inside of a pool": Tutorial(
        "shared.py",
        sdk("'replica_count': 4", "'network': 'projects/host/global/networks/n'"),
        1,
        (*SPLIT, "gcloud projects describe host"),
        ("misplaced-field", "chief-replicas"),
    ),
    "a script packaged for an image that is not prebuilt": Tutorial(
        "script.py",
        INIT + "job = aiplatform.CustomJob.from_local_script(display_name='nodes', "
        "script_path='train.py', container_uri='gcr.io/acme-ml/train:latest', replica_count=4, "
        "machine_type='n1-standard-8')\n",
        1,
        ("not a prebuilt training image", "the script train.py is not here"),
        ("image-registry", "chief-replicas"),
    ),
    "Spot machines as a field of a pool": Tutorial(
        "spot.yaml",
        yaml(
            "- machineSpec: {machineType: n1-standard-8}\n  replicaCount: 4\n  useSpot: true\n"
            "  containerSpec: {imageUri: us-docker.pkg.dev/acme-ml/x/y:1}\n"
        ),
        1,
        ("write scheduling.strategy: SPOT", "replicaCount 1 here, and 3 in a second pool"),
    ),
    "disks that stay, and too few reduction servers": Tutorial(
        "disks.yaml",
        yaml(
            "".join(
                f"- replicaCount: {count}\n  machineSpec: {{machineType: a2-highgpu-8g, "
                "acceleratorType: NVIDIA_TESLA_A100, acceleratorCount: 8}\n  diskSpec: "
                "{bootDiskSize_gb: 200, persistentDiskSizeGb: 2000}\n"
                "  containerSpec: {imageUri: us-docker.pkg.dev/acme-ml/x/y:1}\n"
                for count in (1, 3)
            )
            + "- replicaCount: 2\n  machineSpec: {machineType: n1-highcpu-16}\n  containerSpec: "
            "{imageUri: us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest}\n"
        ),
        1,
        ("a job has only its boot disk", "warning: workerPoolSpecs[2].replicaCount: 64 Gbps"),
        ("bootDiskSize_gb: is no field",),
    ),
    "pools as a mapping, an image without a command": Tutorial(
        "config.yaml",
        yaml(
            "machineSpec: {machineType: a3-highgpu-2g, acceleratorType: NVIDIA_H100_80GB, "
            "acceleratorCount: 2}\nreplicaCount: 1\ncontainerSpec:\n"
            "  imageUri: us-docker.pkg.dev/acme-ml/x/y:1\n",
            mapping=True,
        ),
        0,
        ("cannot run here", "Give containerSpec.command", "FLEX_START or SPOT"),
    ),
    "the same by the client, without a bucket for its package": Tutorial(
        "quick.py", sdk("'replica_count': 1"), 0, ("cannot run here", "Give containerSpec.command")
    ),
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    root = tmp_path / "project"
    (root / "jobs").mkdir(parents=True)
    (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (root / "Pulumi.local.yaml").write_text(STACK)
    monkeypatch.chdir(root)
    return root


@pytest.mark.parametrize("tutorial", TUTORIALS.values(), ids=TUTORIALS)
def test_a_tutorial_becomes_a_job_or_it_is_said_what_is_missing(project, tmp_path, tutorial):
    (tmp_path / tutorial.name).write_text(tutorial.source)
    done = CliRunner().invoke(app, ["import", str(tmp_path / tutorial.name), "--fix"])
    assert done.exit_code == tutorial.code, done.output
    for words in tutorial.told:
        assert words in done.output, done.output
    for words in tutorial.unsaid:
        assert words not in done.stderr, done.output
    assert not list((project / "jobs").iterdir())


@pytest.mark.parametrize("tutorial", TUTORIALS.values(), ids=TUTORIALS)
def test_no_finding_about_a_tutorial_is_told_twice(project, tmp_path, tutorial):
    (tmp_path / tutorial.name).write_text(tutorial.source)
    done = CliRunner().invoke(app, ["import", str(tmp_path / tutorial.name), "--fix"])
    told = [line for line in done.stderr.splitlines() if not line.startswith(" ")]
    assert len(told) == len(set(told))
