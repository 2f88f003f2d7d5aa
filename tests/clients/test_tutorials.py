"""Calls of published tutorials on Google's SDK, as they stand."""

from __future__ import annotations

import pytest

from localgcp.inventory.store import Binding
from tests.clients.conftest import PROJECT, Shell
from vertex_training.naming import local_project_number

pytestmark = pytest.mark.timeout(900)
AGENT = f"vertex-ai@{PROJECT}.iam.gserviceaccount.com"
#: A CustomJob on eight GPUs of any reservation: code and config are objects below /gcs.
SUBMIT = f"""\
from google.cloud import aiplatform
bucket = "gs://flash-box"
{{init}}
at = "/gcs/flash-box/"
pool = dict(
    replica_count=1,
    machine_spec=dict(
        machine_type="a3-megagpu-8g", accelerator_type="NVIDIA_H100_MEGA_80GB", accelerator_count=8,
        reservation_affinity=dict(reservation_affinity_type="{{affinity}}")),
    container_spec=dict(
        image_uri="us-central1-docker.pkg.dev/acme-ml/repo/flash-attention:latest",
        command=["python3", at + "scripts/train.py", "--config", at + "config/model.yaml"]))
job = aiplatform.CustomJob(display_name="flash-attn", worker_pool_specs=[pool],
                           staging_bucket=bucket + "/staging")
job.submit(service_account="{AGENT}")
print("Submitted:", job.resource_name)
job._block_until_complete()
"""
FLASH = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--config", required=True)
text = open(parser.parse_args().config).read()
out = "/".join(["", "gcs", "flash-box", "checkpoints"])
import os
os.makedirs(out, exist_ok=True)
open(out + "/last.txt", "w").write(text.upper())
"""
#: Arrays in a bucket, a script as a training pipeline on a processor and with a GPU.
PIPELINES = """\
from google.cloud import aiplatform, storage
client = storage.Client()
box = "titanic-box"
aiplatform.init(project=client.project, location="us-central1",
                staging_bucket=f"gs://{box}/.vertex_staging")
for name in ("train", "val"):
    client.bucket(box).blob(f"data/{name}.npz").upload_from_filename(f"{name}.npz")
out = f"gs://{box}/artifacts/pytorch/run"
given = [f"--train=gs://{box}/data/train.npz", f"--val=gs://{box}/data/val.npz", "--epochs=2"]
kinds = {"cpu": ("pytorch-xla", "n1-standard-4", {}),
         "gpu": ("pytorch-gpu", "n1-standard-8",
                 dict(accelerator_type="NVIDIA_TESLA_T4", accelerator_count=1))}
for kind, (image, machine, more) in kinds.items():
    job = aiplatform.CustomTrainingJob(
        display_name=f"doe_{kind}", script_path="scripts/train_nn.py",
        container_uri=f"us-docker.pkg.dev/vertex-ai/training/{image}.2-4.py310:latest")
    job.run(args=given, replica_count=1, machine_type=machine, base_output_dir=f"{out}/{kind}",
            sync=True, **more)
print(sum(blob.size for blob in client.list_blobs(box)) > 0)
print(sorted(blob.name for blob in client.list_blobs(box, prefix="artifacts/")))
"""
TRAIN = """\
import argparse, io, os
import numpy, torch
from google.cloud import storage
parser = argparse.ArgumentParser()
for name in ("train", "val", "epochs"):
    parser.add_argument("--" + name)
given = parser.parse_args()
client = storage.Client()
def read(uri):
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    return numpy.load(io.BytesIO(client.bucket(bucket).blob(name).download_as_bytes()))
model = torch.nn.Linear(2, 1)
print("rows", len(read(given.train)["x"]), len(read(given.val)["x"]))
bucket, _, prefix = os.environ["AIP_MODEL_DIR"].removeprefix("gs://").partition("/")
file = io.BytesIO()
torch.save(model.state_dict(), file)
client.bucket(bucket).blob(prefix + "model.pt").upload_from_string(file.getvalue())
"""


@pytest.fixture(scope="module", autouse=True)
def project(shell: Shell) -> None:
    store = shell.make_project(AGENT, "flash-box", "titanic-box")
    roles = store.policy(f"projects/{PROJECT}")
    binding = Binding("roles/storage.objectAdmin", (f"serviceAccount:{AGENT}",))
    store.set_policy(f"projects/{PROJECT}", (*roles.bindings, binding), expected_etag=roles.etag)


def init(affinity: str) -> str:
    own = f'aiplatform.init(project="{PROJECT}", location="us-central1")'
    return SUBMIT.replace("{init}", own).replace("{affinity}", affinity)


def test_a_custom_job_runs_code_and_config_that_gsutil_copied_to_the_bucket(
    shell: Shell, gsutil: str
) -> None:
    files = {
        "train.py": FLASH,
        "model.yaml": "layers: 2\n",
        "submit_flash.py": init("ANY_RESERVATION"),
    }
    for name, text in files.items():
        (shell.folder / name).write_text(text)
    done = shell.run(
        "gsutil cp model.yaml gs://flash-box/config/ && gsutil cp train.py gs://flash-box/scripts/ "
        "&& python submit_flash.py && gsutil cat gs://flash-box/checkpoints/last.txt"
    )
    number = local_project_number(PROJECT)
    assert f"Submitted: projects/{number}/locations/us-central1/customJobs/" in done.stdout
    assert done.stdout.endswith("LAYERS: 2\n")


def test_an_affinity_that_the_api_does_not_have_is_refused_by_the_client(shell: Shell) -> None:
    """As in the tutorial: ``ANY`` is no value of the enumeration."""
    (shell.folder / "submit_any.py").write_text(init("ANY"))
    assert "ANY" in shell.run("python submit_any.py", 1).stderr


def test_a_folder_of_a_bucket_cannot_be_made(shell: Shell, gsutil: str) -> None:
    """As in the tutorial: gsutil takes mkdir for mb, which makes buckets alone."""
    said = shell.run("gsutil mkdir gs://flash-box/config", 1).stderr
    assert "only accepts bucket URLs" in said


def test_a_script_runs_as_a_pipeline_with_arrays_of_the_bucket(shell: Shell) -> None:
    import numpy

    for name in ("train", "val"):
        numpy.savez(shell.folder / f"{name}.npz", x=numpy.zeros((4, 2)))
    (shell.folder / "scripts").mkdir()
    (shell.folder / "scripts" / "train_nn.py").write_text(TRAIN)
    (shell.folder / "pipelines.py").write_text(PIPELINES)
    lines = shell.run("python pipelines.py").stdout.splitlines()
    made = [f"artifacts/pytorch/run/{kind}/model/model.pt" for kind in ("cpu", "gpu")]
    assert lines[-2:] == ["True", str(made)]
