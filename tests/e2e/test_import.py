"""Tests the import of gcloud and client jobs, with one command each, and their local runs.

The sources have the shapes that tutorials have. Scripts need nothing but Python.
"""

import json

import pytest

from localgcp.home import Home
from localgcp.home.servers import ServerInfo
from localgcp.runner.gcsfuse import storage_client
from tests.conftest import running_checkout

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

STACK = """\
config:
  gcp:project: local-import
  gcp:region: us-central1
  vertex-training:projectNumber: "933997734094"
"""

#: A script in a bucket, beside the source; the placement that the client's enum has no name for.
IN_BUCKET = """\
from google.cloud import aiplatform
from google.oauth2 import service_account
import os

PROJECT_ID = "acme-ml"
REGION = "us-central1"
BUCKET = "gs://acme-attention"
IMAGE_URI = f"{REGION}-docker.pkg.dev/{PROJECT_ID}/repo/attention:latest"
SERVICE_KEY = os.getenv("GOOGLE_APPLICATION_CREDENTIALS")
COMMAND = ["python3", "/gcs/acme-attention/scripts/train.py", "--config",
           "/gcs/acme-attention/config/model.json", "--out", "/gcs/acme-results/tuned"]
worker_pool_specs = [{
    "replica_count": 1,
    "machine_spec": {
        "machine_type": "a3-megagpu-8g",
        "accelerator_type": "NVIDIA_H100_MEGA_80GB",
        "accelerator_count": 8,
        "reservation_affinity": {"reservation_affinity_type": "ANY_RESERVATION"},
    },
    "container_spec": {"image_uri": IMAGE_URI, "command": COMMAND},
}]
aiplatform.init(
    project=PROJECT_ID, location=REGION,
    credentials=service_account.Credentials.from_service_account_file(SERVICE_KEY),
)
job = aiplatform.CustomJob(
    display_name="attention", worker_pool_specs=worker_pool_specs,
    staging_bucket=BUCKET + "/staging",
)
job.submit(service_account=f"vertex-ai@{PROJECT_ID}.iam.gserviceaccount.com")
"""
TRAIN = """\
import json, pathlib, sys

config = json.loads(pathlib.Path(sys.argv[2]).read_text())
out = pathlib.Path(sys.argv[4])
out.mkdir(parents=True, exist_ok=True)
(out / "model.txt").write_text("layers: %d" % config["layers"])
"""

#: gcloud's form: a shell script, a token values to fill in, and a bucket by a variable.
BY_GCLOUD = """\
workerPoolSpecs:
  - machineSpec: {machineType: g2-standard-4, acceleratorType: NVIDIA_L4, acceleratorCount: 1}
    replicaCount: 1
    containerSpec:
      imageUri: us-docker.pkg.dev/acme-images/pytorch/gpu
      command: [bash, -c]
      args:
        - |
          set -e
          test -n "$HF_TOKEN"
          echo "would copy to gs://$BUCKET_NAME/runs/first"
      env:
        - {name: HF_TOKEN, value: <YOUR_HF_TOKEN>}
        - {name: BUCKET_NAME, value: <YOUR_BUCKET_NAME>}
"""

#: A training job whose script is beside the notebook, packaged by the client.
BY_SCRIPT = """\
from google.cloud import aiplatform
import datetime as dt

BUCKET_NAME = "acme-passengers"
RUN_ID = dt.datetime.now().strftime("%Y%m%d-%H%M%S")
ARTIFACT_DIR = f"gs://{BUCKET_NAME}/artifacts/{RUN_ID}"
LAST_NAME = "DOE"
job = aiplatform.CustomTrainingJob(
    display_name=f"{LAST_NAME}_nn_{RUN_ID}",
    script_path="scripts/train_nn.py",
    container_uri="us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest",
)
job.run(
    args=[f"--train=gs://{BUCKET_NAME}/data/train.csv", "--epochs=2"],
    replica_count=1, machine_type="n1-standard-4", base_output_dir=ARTIFACT_DIR, sync=True,
)
"""
TRAIN_NN = """\
import os, sys

from google.cloud import storage

_, _, name = sys.argv[1].partition("=gs://")
rows = storage.Client().bucket(name.split("/")[0]).blob(name.partition("/")[2]).download_as_text()
bucket, _, prefix = os.environ["AIP_MODEL_DIR"].removeprefix("gs://").partition("/")
storage.Client().bucket(bucket).blob(prefix + "rows.txt").upload_from_string(str(rows.count("\\n")))
"""

#: Pools as a mapping, an image without a command: it needs a container, and none is here.
WITHOUT_COMMAND = """\
workerPoolSpecs:
  machineSpec: {machineType: n1-standard-4}
  replicaCount: 1
  containerSpec: {imageUri: us-docker.pkg.dev/acme-images/training/mine:1}
"""

SOURCES = {
    "one/attention.py": IN_BUCKET,
    "one/scripts/train.py": TRAIN,
    "one/config/model.json": '{"layers": 3}',
    "two/vertex_job.yaml": BY_GCLOUD,
    "three/passengers.py": BY_SCRIPT,
    "three/scripts/train_nn.py": TRAIN_NN,
    "three/train.csv": "a,b\n1,2\n3,4\n",
    "four/vm.yaml": WITHOUT_COMMAND,
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Import three sources; the command of the third one also deploys the stack."""
    folder = tmp_path_factory.mktemp("sources")
    for name, text in SOURCES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    with running_checkout(tmp_path_factory.mktemp("import")) as checkout:
        (checkout.path / "Pulumi.local.yaml").write_text(STACK)
        for source in ("one/attention.py", "two/vertex_job.yaml"):
            checkout.run("vt", "import", str(folder / source), "--write")
        told = checkout.run("vt", "import", str(folder / "three/passengers.py"), "--up")
        yield checkout, folder, told


def jobs(checkout):
    listed = checkout.run("vt", "jobs", "list", "--stack", "local", "--format", "json")
    return {job["job"]: job for job in json.loads(listed.stdout)}


def content(checkout, bucket, suffix):
    info = ServerInfo.read(Home(checkout.home, checkout.path).server_file)
    client = storage_client(f"http://127.0.0.1:{info.storage_port}")
    [blob] = [
        b for b in client.list_blobs(f"local-import-{bucket}-local") if b.name.endswith(suffix)
    ]
    return blob.download_as_text()


def test_import_with_up_runs_the_imported_job(imported):
    checkout, _, told = imported
    assert "SUCCEEDED" in told.stdout
    assert content(checkout, "acme-passengers", "rows.txt") == "3"


def test_import_replaces_a_bucket_script_by_the_local_file(imported):
    checkout, _, _ = imported
    assert jobs(checkout)["attention"]["state"] == "SUCCEEDED"
    assert content(checkout, "acme-results", "model.txt") == "layers: 3"


def test_imported_job_uses_a_secret_and_a_bucket_variable(imported):
    checkout, _, _ = imported
    log = checkout.run("vt", "jobs", "logs", "vertex-job", "--stack", "local").stdout
    assert "would copy to gs://local-import-bucket-name-local/runs/first" in log


def test_past_job_is_imported_by_its_id(imported):
    checkout, _, _ = imported
    ran = jobs(checkout)["attention"]["id"]
    done = checkout.run("vt", "import", "--job", ran, "--stack", "local", "--name", "again")
    assert "+++ jobs/again.yaml" in done.stdout
    assert "${buckets.acme-attention.mount}/scripts/train.py" in done.stdout


def test_outputs_of_a_job_are_listed_and_downloaded(imported, tmp_path):
    checkout, _, _ = imported
    artifacts = ("vt", "jobs", "artifacts")
    listed = checkout.run(*artifacts, "doe-nn", "--stack", "local")
    assert "/model/rows.txt" in listed.stdout
    checkout.run(*artifacts, "doe-nn", str(tmp_path / "results"), "--stack", "local")
    [fetched] = (tmp_path / "results").rglob("rows.txt")
    assert fetched.read_text() == "3"
    done = checkout.run(*artifacts, "vertex-job", "--stack", "local", expect=1)
    assert "has no output directory" in done.stderr


@pytest.mark.nightly
def test_imported_job_that_cannot_run_here_fails_with_the_reason(imported):
    checkout, folder, _ = imported
    done = checkout.run("vt", "import", str(folder / "four/vm.yaml"), "--up", expect=1)
    assert "cannot run here" in done.stdout
    assert "Set containerSpec.command" in done.stdout


def test_import_of_an_invalid_source_leaves_the_stack_unchanged(imported):
    checkout, folder, _ = imported
    wrong = folder / "wrong.yaml"
    wrong.write_text(WITHOUT_COMMAND.replace("replicaCount: 1", "replicaCount: 4"))
    before = (checkout.path / "Pulumi.local.yaml").read_bytes()
    done = checkout.run("vt", "import", str(wrong), "--up", expect=1)
    assert "the first pool must have one replica" in done.stderr
    assert (checkout.path / "Pulumi.local.yaml").read_bytes() == before
