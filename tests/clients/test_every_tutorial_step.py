"""Every step of five published tutorials, in their order, as written but for names, addresses and
how often a log is polled.

A step that the tutorial has wrong, or that is not here, says why; docs/local-stack.md lists these.
Texts of programs that the tutorials clone are ours.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from localgcp.inventory.store import SERVICE, Binding
from tests.clients.conftest import PROJECT, Shell, read_log, until_ended
from vertex_training.naming import local_project_number

pytestmark = pytest.mark.timeout(900)
AGENT = f"vertex-ai@{PROJECT}.iam.gserviceaccount.com"
DEFAULT = f"{local_project_number(PROJECT)}-compute@developer.gserviceaccount.com"


@pytest.fixture(scope="module", autouse=True)
def project(shell: Shell) -> None:
    """A project with an account that may write, and with the API of Compute Engine."""
    store = shell.make_project(AGENT)
    store.put(SERVICE, f"{PROJECT}/compute.googleapis.com", PROJECT, {}, {})
    roles = store.policy(f"projects/{PROJECT}")
    binding = Binding("roles/storage.objectAdmin", (f"serviceAccount:{AGENT}",))
    store.set_policy(f"projects/{PROJECT}", (*roles.bindings, binding), expected_etag=roles.etag)


# 1. A transformer in an image of one's own, submitted by the SDK with a key file.


def test_docker_is_configured_below_the_local_home(shell: Shell, gcloud: str) -> None:
    before = _files_of_the_user()
    done = shell.run("gcloud auth configure-docker us-central1-docker.pkg.dev </dev/null")
    assert "Docker configuration file updated" in done.stderr
    [written] = shell.home.cloud_sdk.glob("**/.docker/config.json")
    assert "us-central1-docker.pkg.dev" in written.read_text()
    assert _files_of_the_user() == before


def _files_of_the_user() -> dict[str, float]:
    """What gcloud would write for Docker and ssh."""
    folders = [Path(os.environ["HOME"], name) for name in (".docker", ".ssh")]
    return {str(file): file.stat().st_mtime for each in folders for file in each.glob("*")}


def test_a_bucket_gets_config_code_and_data(shell: Shell, gsutil: str) -> None:
    for name in ("assets/test-files", "scripts", "datasets/processed"):
        (shell.folder / name).mkdir(parents=True, exist_ok=True)
    (shell.folder / "assets/test-files/config.yaml").write_text("layers: 2\n")
    (shell.folder / "scripts/flash_train.py").write_text(TRAIN)
    (shell.folder / "datasets/processed/part.bin").write_bytes(b"1")
    done = shell.run(
        "gsutil mb -l us-central1 gs://flash-example\n"
        "gsutil cp ./assets/test-files/config.yaml \\\n  gs://flash-example/config/\n"
        "gsutil cp ./scripts/flash_train.py \\\n  gs://flash-example/scripts/\n"
        "gsutil -m cp -r ./datasets/processed \\\n  gs://flash-example/datasets/\n"
        "gsutil ls -R gs://flash-example"
    )
    assert "gs://flash-example/datasets/processed/part.bin" in done.stdout.split()
    assert "gs://flash-example/config/config.yaml" in done.stdout.split()
    told = shell.run("gsutil mkdir \\\n  gs://flash-example/a \\\n  gs://flash-example/b", 1).stderr
    assert "only accepts bucket URLs" in told  # gsutil has no mkdir: it takes it for mb


#: The code in the image: it reads its config, and writes, below /gcs.
TRAIN = """\
import os, sys
text = open(sys.argv[sys.argv.index("--config") + 1]).read().upper()
print(text)
out = "/".join(["", "gcs", "flash-example", "checkpoints"])
os.makedirs(out, exist_ok=True)
open(out + "/last.txt", "w").write(text)
"""
SUBMIT = f"""\
from google.cloud import aiplatform
from google.oauth2 import service_account
import os

PROJECT_ID  = "{PROJECT}"
REGION      = "us-central1"
BUCKET      = "gs://flash-example"
IMAGE_URI   = f"{{REGION}}-docker.pkg.dev/acme-ml/repo/flash-attention:latest"
SERVICE_KEY = os.getenv("GOOGLE_APPLICATION_CREDENTIALS")
SERVICE_ACCT= f"vertex-ai@{{PROJECT_ID}}.iam.gserviceaccount.com"

CMD = ["python3", "/gcs/flash-example/scripts/flash_train.py",
       "--config", "/gcs/flash-example/config/config.yaml"]

worker_pool_specs = [
    {{
        "replica_count": 1,
        "machine_spec": {{
            "machine_type": "a3-megagpu-8g",
            "accelerator_type": "NVIDIA_H100_MEGA_80GB",
            "accelerator_count": 8,
            "reservation_affinity": AFFINITY
        }},
        "container_spec": {{"image_uri": IMAGE_URI, "command": CMD}}
    }}
]

aiplatform.init(
    project=PROJECT_ID,
    location=REGION,
    credentials=service_account.Credentials.from_service_account_file(SERVICE_KEY)
)

job = aiplatform.CustomJob(
    display_name="flash-attn-training",
    worker_pool_specs=worker_pool_specs,
    staging_bucket=BUCKET + "/staging"
)
job.submit(service_account=SERVICE_ACCT)

print(f"Submitted: {{job.resource_name}}")
"""
RESERVATION = """{
  "reservation_affinity_type": "SPECIFIC_RESERVATION",
  "key": "compute.googleapis.com/reservation-name",
  "values": [
    f"projects/{PROJECT_ID}/zones/us-central1-a/reservations/my-h100-resv"
  ]
}"""


@pytest.mark.parametrize(
    ("affinity", "log", "read"),
    [
        (
            '{ "reservation_affinity_type": "ANY_RESERVATION" }',
            "LAYERS: 2",
            "gcloud ai custom-jobs stream-logs {} --polling-interval=1",
        ),
        (RESERVATION, "reservations/my-h100-resv", read_log("{}")),  # nobody made it: NOT_FOUND
    ],
)
def test_a_job_is_submitted_with_a_key_file(
    shell: Shell, gcloud: str, affinity: str, log: str, read: str
) -> None:
    (shell.folder / "submit_key.py").write_text(SUBMIT.replace("AFFINITY", affinity))
    name = shell.run("python submit_key.py").stdout.rpartition("Submitted: ")[2].strip()
    describe = f"gcloud ai custom-jobs describe {name}"
    done = shell.run(
        f"{until_ended(describe)} && {describe} --format='value(state,error.message)' && "
        f"{read.format(name)}"
    ).stdout
    assert log in done, done
    if "reservations" not in log:
        written = shell.run("gsutil cat gs://flash-example/checkpoints/last.txt").stdout
        assert written == "LAYERS: 2\n"


def test_the_affinity_that_the_tutorial_names_is_no_value_of_the_api(shell: Shell) -> None:
    affinity = '{ "reservation_affinity_type": "ANY" }'
    (shell.folder / "submit_any_key.py").write_text(SUBMIT.replace("AFFINITY", affinity))
    assert "KeyError: 'ANY'" in shell.run("python submit_any_key.py", 1).stderr


# 2. A fine-tuning by gcloud's file, in europe-west4.

PERMISSIONS = """\
export PROJECT_ID=$(gcloud config get-value project)

gcloud services enable aiplatform.googleapis.com \\
    --project=${PROJECT_ID}
gcloud services list --enabled \\
    --filter="name:aiplatform.googleapis.com" \\
    --project=${PROJECT_ID}
export SERVICE_ACCOUNT=$(gcloud iam service-accounts list \\
    --filter="displayName:Compute Engine default service account" \\
    --format="value(email)" \\
    --project=${PROJECT_ID})

gcloud projects add-iam-policy-binding ${PROJECT_ID} \\
    --member="serviceAccount:${SERVICE_ACCOUNT}" \\
    --role="roles/storage.admin"

gcloud projects add-iam-policy-binding ${PROJECT_ID} \\
    --member="serviceAccount:${SERVICE_ACCOUNT}" \\
    --role="roles/aiplatform.user"
"""
CONFIG = """\
workerPoolSpecs:
  - machineSpec:
      machineType: g2-standard-4
      acceleratorType: NVIDIA_L4
      acceleratorCount: 1
    replicaCount: 1
    containerSpec:
      imageUri: us-docker.pkg.dev/deeplearning-platform-release/gcr.io/pytorch-gpu.2-0.py310
      command:
        - bash
        - -c
      args:
        - |
          curl -LsSf file://FOLDER/install.sh | sh &&
          source $HOME/.local/bin/env &&
          git clone file://FOLDER/finetuning.git &&
          cd finetuning &&
          uv sync &&
          uv run python -m scripts.run_train data.source=gcs training.batch_size=8 experiment_id=exp
          gsutil -m cp -r outputs/ gs://$BUCKET_NAME/runs/exp
      env:
        - name: HF_TOKEN
          value: none
        - name: BUCKET_NAME
          value: gemma-box
"""
CREATE = """\
export REGION="europe-west4" # change to any region you want
export USERNAME="me"
export JOB_NAME="${USERNAME}-gemma-finetune-$(date +%Y%m%d%H%M%S)"
export PROJECT_ID=$(gcloud config get-value project)

gcloud ai custom-jobs create \\
    --region=${REGION} \\
    --display-name=${JOB_NAME} \\
    --config=vertex_job.yaml \\
    --project=${PROJECT_ID}
gcloud ai custom-jobs list \\
    --region=${REGION} \\
    --project=${PROJECT_ID}
JOB_ID=$(gcloud ai custom-jobs list \\
    --region=${REGION} \\
    --filter="displayName=${JOB_NAME}" \\
    --format="value(name.scope(customJobs))")
UNTIL
gcloud ai custom-jobs stream-logs ${JOB_ID} --region=${REGION} --polling-interval=1
gcloud storage cat gs://gemma-box/runs/exp/model.txt
gcloud storage rm --recursive gs://gemma-box
"""


def test_the_default_account_of_compute_engine_is_found_and_gets_roles(
    shell: Shell, gcloud: str
) -> None:
    told = shell.run(PERMISSIONS).stdout
    assert "aiplatform.googleapis.com" in told
    policy = told.rpartition("bindings:")[2]
    for role in ("roles/storage.admin", "roles/aiplatform.user"):
        assert re.search(rf"- serviceAccount:{DEFAULT}\n  role: {role}", policy), policy


def test_a_member_without_a_name_is_refused(shell: Shell, gcloud: str) -> None:
    """What the tutorial's command sends where its filter finds no account."""
    call = "gcloud projects add-iam-policy-binding {} --member=serviceAccount: --role=roles/viewer"
    assert "INVALID_ARGUMENT" in shell.run(call.format(PROJECT), 1).stderr


def test_a_job_installs_uv_clones_trains_and_uploads(shell: Shell, gcloud: str) -> None:
    _make_clone(shell.folder)
    config = CONFIG.replace("FOLDER", str(shell.folder))
    (shell.folder / "vertex_job.yaml").write_text(config)
    until = until_ended("gcloud ai custom-jobs describe ${JOB_ID} --region=${REGION}")
    (shell.folder / "create.sh").write_text(CREATE.replace("UNTIL", until))
    shell.make_project(AGENT, "gemma-box")
    done = shell.run("bash -e create.sh")
    assert "is submitted successfully" in done.stderr
    assert "data.source=gcs" in done.stdout
    assert "trained" in done.stdout
    assert "404" in shell.run("gcloud storage ls gs://gemma-box", 1).stderr


def _make_clone(folder: Path) -> None:
    """What the job downloads: the installer of uv, and a repository."""
    uv = Path(sys.executable).with_name("uv")
    (folder / "install.sh").write_text(
        f"mkdir -p $HOME/.local/bin\nln -sf {uv} $HOME/.local/bin/uv\n"
        "echo 'export PATH=\"$HOME/.local/bin:$PATH\"' > $HOME/.local/bin/env\n"
    )
    source = folder / "finetuning"
    (source / "scripts").mkdir(parents=True, exist_ok=True)
    text = '[project]\nname = "f"\nversion = "1"\nrequires-python = ">=3.10"\n'
    (source / "pyproject.toml").write_text(text)
    (source / "scripts" / "run_train.py").write_text(
        "import os, sys\nprint(sys.argv[1:])\nos.makedirs('outputs')\n"
        "open('outputs/model.txt', 'w').write('trained')\n"
    )
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(source)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    clone = ["git", "clone", "-q", "--bare", str(source), str(folder / "finetuning.git")]
    subprocess.run(clone, check=True)


def test_blanks_after_a_backslash_end_the_command_there_as_here(shell: Shell, gcloud: str) -> None:
    told = shell.run("gcloud ai custom-jobs list \\     \n    --region=europe-west4", 127).stderr
    assert "unrecognized arguments" in told


# 3. A notebook: arrays to a bucket, a script on a processor and on a GPU.

CELLS = [
    "%cd HERE\n",
    "from google.cloud import aiplatform, storage\nclient = storage.Client()\n"
    'PROJECT_ID = client.project\nREGION = "us-central1"\nBUCKET_NAME = "johndoe-titanic"\n'
    "aiplatform.init(project=PROJECT_ID, location=REGION, "
    'staging_bucket=f"gs://{BUCKET_NAME}/.vertex_staging")',
    "import io\nimport numpy as np\nbucket = client.bucket(BUCKET_NAME)\n"
    'blob = bucket.blob("titanic_train.csv")\n'
    "rows = np.genfromtxt(io.BytesIO(blob.download_as_bytes()), delimiter=',', skip_header=1)\n"
    'np.savez("HERE/train_data.npz", X_train=rows[:3, 1:], y_train=rows[:3, 0])\n'
    'np.savez("HERE/val_data.npz", X_val=rows[3:, 1:], y_val=rows[3:, 0])',
    'bucket.blob("data/train_data.npz").upload_from_filename("HERE/train_data.npz")\n'
    'bucket.blob("data/val_data.npz").upload_from_filename("HERE/val_data.npz")\n'
    'print("Uploaded: gs://%s/data/train_data.npz and val_data.npz" % BUCKET_NAME)',
    "total_size_bytes = 0\nfor blob in client.list_blobs(BUCKET_NAME):\n"
    "    total_size_bytes += blob.size\n    print(blob.name)\n"
    "total_size_mb = total_size_bytes / (1024**2)\n"
    "print(f\"Total size of bucket '{BUCKET_NAME}': {total_size_mb:.2f} MB\")",
    "import time as t\nstart = t.time()\n!python HERE/train_nn.py \\\n"
    "    --train HERE/train_data.npz \\\n    --val HERE/val_data.npz \\\n    --epochs 500 \\\n"
    "    --learning_rate 0.001\n"
    'print(f"Total local runtime: {t.time() - start:.2f} seconds")',
    'import datetime as dt\nRUN_ID = dt.datetime.now().strftime("%Y%m%d-%H%M%S")\n'
    'ARTIFACT_DIR = f"gs://{BUCKET_NAME}/artifacts/pytorch/{RUN_ID}"\n'
    "IMAGE = 'us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest'\n"
    'MACHINE = "n1-standard-4"',
    "LAST_NAME = 'DOE'\n"
    'DISPLAY_NAME = f"{LAST_NAME}_pytorch_nn_{RUN_ID}"\njob = aiplatform.CustomTrainingJob(\n'
    '    display_name=DISPLAY_NAME,\n    script_path="train_nn.py",\n    container_uri=IMAGE)',
    'job.run(\n    args=[\n        f"--train=gs://{BUCKET_NAME}/data/train_data.npz",\n'
    '        f"--val=gs://{BUCKET_NAME}/data/val_data.npz",\n        "--epochs=200",\n'
    '        "--learning_rate=0.001"\n    ],\n    replica_count=1,\n    machine_type=MACHINE,\n'
    "    base_output_dir=ARTIFACT_DIR,\n    sync=True,\n)\n"
    'print("Artifacts folder:", ARTIFACT_DIR)',
    'IMAGE = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"\n'
    'MACHINE = "n1-standard-8"\nACCELERATOR_TYPE = "NVIDIA_TESLA_T4"\nACCELERATOR_COUNT = 1\n'
    "job = aiplatform.CustomTrainingJob(\n    display_name=DISPLAY_NAME,\n"
    '    script_path="train_nn.py",\n    container_uri=IMAGE,\n)\njob.run(\n    args=[\n'
    '        f"--train=gs://{BUCKET_NAME}/data/train_data.npz",\n'
    '        f"--val=gs://{BUCKET_NAME}/data/val_data.npz",\n        "--epochs=200",\n'
    '        "--learning_rate=0.001",\n    ],\n    replica_count=1,\n    machine_type=MACHINE,\n'
    "    accelerator_type=ACCELERATOR_TYPE,\n    accelerator_count=ACCELERATOR_COUNT,\n"
    "    base_output_dir=ARTIFACT_DIR + '/gpu',\n    sync=True,\n)",
    "for blob in client.list_blobs(BUCKET_NAME, prefix='artifacts/'):\n    print(blob.name)",
]
TRAIN_NN = """\
import argparse, io, json, os
import numpy as np
parser = argparse.ArgumentParser()
for name in ("train", "val", "epochs", "learning_rate"):
    parser.add_argument("--" + name, required=True)
given = parser.parse_args()
def load(uri):
    if not uri.startswith("gs://"):
        return np.load(uri)
    from google.cloud import storage
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    return np.load(io.BytesIO(storage.Client().bucket(bucket).blob(name).download_as_bytes()))
print("rows", len(load(given.train)["X_train"]), len(load(given.val)["X_val"]))
out = os.environ.get("AIP_MODEL_DIR")
if out:
    from google.cloud import storage
    bucket, _, prefix = out.removeprefix("gs://").partition("/")
    text = json.dumps({"epochs": int(given.epochs)})
    target = storage.Client().bucket(bucket)
    target.blob(prefix + "metrics.json").upload_from_string(text)
    import torch
    file = io.BytesIO()
    torch.save(torch.nn.Linear(2, 1).state_dict(), file)
    target.blob(prefix + "model.pt").upload_from_string(file.getvalue())
"""
TITANIC = "Survived,Pclass,Age\n1,1,30\n0,3,22\n1,2,41\n0,3,19\n"


def test_a_notebook_runs_from_its_first_cell_to_its_last(
    shell: Shell, gsutil: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ipython = _install_ipython(tmp_path_factory.mktemp("ipython"))
    here = str(shell.folder)
    cells = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [],
         "source": text.replace("HERE", here)}
        for text in CELLS
    ]  # fmt: skip
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (shell.folder / "titanic.ipynb").write_text(json.dumps(notebook))
    (shell.folder / "train_nn.py").write_text(TRAIN_NN)
    (shell.folder / "titanic_train.csv").write_text(TITANIC)
    done = shell.run(
        "gsutil mb gs://johndoe-titanic && gsutil cp titanic_train.csv gs://johndoe-titanic/ && "
        f"PYTHONPATH=$PYTHONPATH:{ipython} python -m IPython --no-banner titanic.ipynb"
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert "rows 3 1" in done.stdout  # here, before it is sent
    assert "Total size of bucket 'johndoe-titanic': 0.00 MB" in done.stdout
    for name in ("metrics.json", "model.pt"):
        made = re.findall(rf"artifacts/pytorch/[\d-]+(/gpu)?/model/{name}", done.stdout)
        assert sorted(made) == ["", "/gpu"]


def _install_ipython(folder: Path) -> Path:
    """A folder of packages; skips where no registry has them."""
    uv = str(Path(sys.executable).with_name("uv"))
    wanted = ["ipython==9.18.1", "nbformat==5.11.1"]
    install = [uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", str(folder)]
    done = subprocess.run([*install, *wanted], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"IPython cannot be installed: {done.stderr.strip()[-200:]}")
    return folder


# 4. Worker pools, networks, disks, Spot machines and variables of many nodes.

GPUS = """{
            "machine_type": "a2-highgpu-8g",
            "accelerator_type": "NVIDIA_TESLA_A100",
            "accelerator_count": 8
        }"""
JOB = """\
from google.cloud import aiplatform
INIT
job = aiplatform.CustomJob(
    display_name="distributed-training",
    worker_pool_specs=[{
        "machine_spec": GPUS,
        "replica_count": 4,
        "container_spec": {"image_uri": "us-docker.pkg.dev/acme-ml/training/training:latest"},
        MORE
    }]
)
job.submit()
"""
STAGING = f'aiplatform.init(project="{PROJECT}", location="us-central1", staging_bucket="gs://flash-example")'


@pytest.mark.parametrize(
    ("init", "more", "reason"),
    [
        # As the tutorial writes it, without a bucket for packages: the client refuses.
        ("", "", "staging_bucket should be passed to CustomJob constructor"),
        (
            STAGING,
            '"network": "projects/PROJECT_ID/global/networks/custom-vpc", '
            '"reserved_ip_ranges": ["10.128.0.0/20"]',
            "network",
        ),
        (STAGING, '"enable_web_access": False', "enable_web_access"),
        (
            STAGING,
            '"disk_spec": {"boot_disk_type": "pd-ssd", "persistent_disk_size_gb": 1000}',
            "persistent_disk_size_gb",
        ),
    ],
)
def test_a_field_that_a_pool_does_not_have_is_refused_by_the_client(
    shell: Shell, init: str, more: str, reason: str
) -> None:
    text = JOB.replace("GPUS", GPUS).replace("INIT", init).replace("MORE", more)
    (shell.folder / "pools.py").write_text(text)
    told = shell.run("python pools.py", 1).stderr.splitlines()[-1]
    assert reason in told


REDUCTION = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
POOLS = JOB.replace("INIT", STAGING).replace(
    "MORE",
    '}, {"machine_spec": GPUS, "replica_count": 3, "container_spec": '
    '{"image_uri": "us-docker.pkg.dev/acme-ml/training/training:latest"}}, '
    '{"machine_spec": {"machine_type": "n1-highcpu-16"}, "replica_count": 2, '
    f'"container_spec": {{"image_uri": "{REDUCTION}"}}',
)


def test_pools_with_a_reduction_server_are_taken_and_say_why_they_end(
    shell: Shell, gcloud: str
) -> None:
    (shell.folder / "reduction.py").write_text(POOLS.replace("GPUS", GPUS))
    shell.run("python reduction.py")
    assert "reduction server" in _error(shell, "distributed-training")


def _error(shell: Shell, name: str) -> str:
    """Why the newest job of this name FAILED."""
    call = f'gcloud ai custom-jobs list --region=us-central1 --filter="displayName={name}"'
    wait = f'until {call} --format="value(state)" | grep -q FAILED; do sleep 1; done'
    return shell.run(f'{wait}; {call} --format="value(error.message)"').stdout


@pytest.mark.parametrize(
    "step",
    [
        "gcloud compute addresses create vertex-ai-range \\\n    --global \\\n"
        "    --purpose=VPC_PEERING \\\n    --prefix-length=16 \\\n    --network=custom-vpc",
        "gcloud services vpc-peerings connect \\\n"
        "    --service=servicenetworking.googleapis.com \\\n    --ranges=vertex-ai-range \\\n"
        "    --network=custom-vpc",
        "gcloud compute addresses create vertex-ai-psc \\\n    --region=us-central1 \\\n"
        "    --subnet=training-subnet \\\n    --addresses=10.128.0.10",
        "gcloud compute forwarding-rules create vertex-ai-psc-rule \\\n"
        "    --region=us-central1 \\\n    --network=custom-vpc \\\n    --address=vertex-ai-psc \\\n"
        f"    --target-service-attachment=projects/{PROJECT}/regions/us-central1/"
        "serviceAttachments/vertex-ai",
    ],
    ids=("range", "peering", "address", "endpoint"),
)
def test_networks_are_the_stacks(shell: Shell, gcloud: str, step: str) -> None:
    told = shell.run(step, 1).stderr
    assert "there is no method of the local cloud at" in told
    assert "docs/local-stack.md" in told


def test_images_are_those_of_repositories_that_a_stack_made(shell: Shell, gcloud: str) -> None:
    image = f"us-central1-docker.pkg.dev/{PROJECT}/repo/flash"
    told = shell.run(f"gcloud artifacts docker images list {image}", 1).stderr
    assert "repositories/repo' was not found" in told


def test_the_agent_gets_a_role_in_the_host_project(shell: Shell, gcloud: str) -> None:
    agent = "serviceAccount:service-123456789012@gcp-sa-aiplatform.iam.gserviceaccount.com"
    told = shell.run(
        f'gcloud projects add-iam-policy-binding local-network-project \\\n    --member="{agent}" '
        '\\\n    --role="roles/compute.networkUser"'
    ).stdout
    assert f"- {agent}" in told


def test_the_form_of_rest_is_none_of_gclouds(shell: Shell, gcloud: str) -> None:
    """Both YAML files of the tutorial have displayName and jobSpec, and useSpot in a pool."""
    (shell.folder / "spot.yaml").write_text(
        "displayName: preemptible-distributed-training\njobSpec:\n  scheduling:\n"
        '    restartJobOnWorkerRestart: true\n    timeout: "86400s"\n  workerPoolSpecs:\n'
        "    - machineSpec:\n        machineType: a2-highgpu-8g\n"
        "        acceleratorType: NVIDIA_TESLA_A100\n        acceleratorCount: 8\n"
        "      replicaCount: 4\n      containerSpec:\n"
        "        imageUri: gcr.io/project/training:latest\n      useSpot: true\n"
    )
    create = "gcloud ai custom-jobs create --region=us-central1 --display-name=spot --config="
    told = shell.run(create + "spot.yaml", 1).stderr
    assert 'Unknown name "displayName"' in told


#: How the tutorial reads the variables of the service, in a job of two nodes.
CONFIG_CODE = """\
import os
import json
rank = int(os.environ.get("RANK", 0))
world_size = int(os.environ.get("WORLD_SIZE", 1))
master_addr = os.environ.get("MASTER_ADDR", "localhost")
tf_config = os.environ.get("TF_CONFIG")
if tf_config:
    tf_config = json.loads(tf_config)
print(f"Rank {rank}/{world_size}")
print(f"Model: {os.environ['MODEL_NAME']}", sorted(tf_config["cluster"]))
"""


def test_code_reads_the_variables_of_the_service_and_its_own(shell: Shell, gcloud: str) -> None:
    pool = (
        "- machineSpec: {machineType: n1-standard-4}\n  replicaCount: 1\n  containerSpec:\n"
        "    imageUri: python:3.11\n    command: [python3, -c, CODE]\n"
        "    env: [{name: MODEL_NAME, value: llama-2-7b}]\n"
    ).replace("CODE", json.dumps(CONFIG_CODE))
    (shell.folder / "nodes.yaml").write_text("workerPoolSpecs:\n" + pool + pool)
    describe = "gcloud ai custom-jobs describe $JOB --region=us-central1"
    done = shell.run(
        "JOB=$(gcloud ai custom-jobs create --region=us-central1 --display-name=nodes "
        f'--config=nodes.yaml --format="value(name)") && {until_ended(describe)} && '
        f"{read_log('$JOB')}"
    ).stdout
    assert "Model: llama-2-7b ['chief', 'worker']" in done


LAUNCH = f"""\
from google.cloud import aiplatform

aiplatform.init(
    project="{PROJECT}",
    location="us-central1",
    staging_bucket="gs://flash-example"
)

job = aiplatform.CustomJob.from_local_script(
    display_name="4-node-training",
    script_path="scripts/flash_train.py",
    container_uri="us-docker.pkg.dev/acme-ml/training/training:latest",
    requirements=["deepspeed==0.14.0", "transformers==4.36.0"],
    replica_count=4,
    machine_type="a2-highgpu-8g",
    accelerator_type="NVIDIA_TESLA_A100",
    accelerator_count=8,
    boot_disk_type="pd-ssd",
    boot_disk_size_gb=200
)

job.run(
    sync=SYNC,
    service_account="vertex-training@{PROJECT}.iam.gserviceaccount.com"
)

print(f"Job submitted: {{job.resource_name}}")
"""


@pytest.mark.parametrize(
    ("sync", "reason"),
    [
        # As written: the client has no name yet when it is printed.
        ("False", "CustomJob resource has not been created"),
        ("True", "You do not have permission to act as service_account"),
    ],
)
def test_a_script_is_packaged_and_refused_as_an_account_that_nobody_made(
    shell: Shell, sync: str, reason: str
) -> None:
    """The client's command would install the packages by pip, into a Python of this machine."""
    (shell.folder / "launch.py").write_text(LAUNCH.replace("SYNC", sync))
    done = shell.run("python launch.py", 1)
    assert "Training script copied to" in done.stdout + done.stderr
    assert reason in done.stderr


# 5. A quick guide: two GPUs by gcloud and by the SDK, and a VM of one's own.


def test_pools_as_a_mapping_are_taken_and_a_comment_after_a_backslash_ends_the_command(
    shell: Shell, gcloud: str
) -> None:
    (shell.folder / "config.yaml").write_text(
        "workerPoolSpecs:\n  machineSpec:\n    machineType: a3-highgpu-2g  # Example: 2x H100\n"
        "    acceleratorType: NVIDIA_H100_80GB\n    acceleratorCount: 2  # At least 2\n"
        "  replicaCount: 1\n  containerSpec:\n    imageUri: gcr.io/acme-ml/your-image:latest\n"
    )
    create = (
        "gcloud ai custom-jobs create \\\n  --region=us-central1 \\{}\n"
        "  --display-name=your-training-job \\\n  --config=config.yaml"
    )
    told = shell.run(create.format("  # Choose a region with GPU availability"), 127).stderr
    assert "unrecognized arguments" in told
    assert "is submitted successfully" in shell.run(create.format("")).stderr
    assert "Give containerSpec.command" in _error(shell, "your-training-job")


def test_a_vm_is_none_of_the_local_cloud_and_no_key_is_made_for_it(
    shell: Shell, gcloud: str
) -> None:
    before = _files_of_the_user()
    told = shell.run("gcloud compute ssh your-vm-name --zone=us-central1-a </dev/null", 1).stderr
    assert "instances/your-vm-name. docs/local-stack.md" in told
    assert _files_of_the_user() == before
