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
from tests.clients.conftest import PROGRAMS, PROJECT, Shell, read_log, until_ended
from vertex_training.naming import local_project_number

pytestmark = pytest.mark.timeout(900)
AGENT = f"vertex-ai@{PROJECT}.iam.gserviceaccount.com"
TEXTS = PROGRAMS["tutorials"]
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
    (shell.folder / "scripts/flash_train.py").write_text(TEXTS["TRAIN"])
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


@pytest.mark.parametrize(
    ("affinity", "log", "read"),
    [
        (
            '{ "reservation_affinity_type": "ANY_RESERVATION" }',
            "LAYERS: 2",
            "gcloud ai custom-jobs stream-logs {} --polling-interval=1",
        ),
        (
            TEXTS["RESERVATION"],
            "reservations/my-h100-resv",
            read_log("{}"),
        ),  # nobody made it: NOT_FOUND
    ],
)
def test_a_job_is_submitted_with_a_key_file(
    shell: Shell, gcloud: str, affinity: str, log: str, read: str
) -> None:
    (shell.folder / "submit_key.py").write_text(TEXTS["SUBMIT"].replace("AFFINITY", affinity))
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
    (shell.folder / "submit_any_key.py").write_text(TEXTS["SUBMIT"].replace("AFFINITY", affinity))
    assert "KeyError: 'ANY'" in shell.run("python submit_any_key.py", 1).stderr


# 2. A fine-tuning by gcloud's file, in europe-west4.


def test_default_account_of_compute_engine_gets_roles(shell: Shell, gcloud: str) -> None:
    told = shell.run(TEXTS["PERMISSIONS"]).stdout
    assert "aiplatform.googleapis.com" in told
    policy = told.rpartition("bindings:")[2]
    for role in ("roles/storage.admin", "roles/aiplatform.user"):
        assert re.search(rf"- serviceAccount:{DEFAULT}\n  role: {role}", policy), policy


def test_a_job_installs_uv_clones_trains_and_uploads(shell: Shell, gcloud: str) -> None:
    _make_clone(shell.folder)
    config = TEXTS["CONFIG"].replace("FOLDER", str(shell.folder))
    (shell.folder / "vertex_job.yaml").write_text(config)
    until = until_ended("gcloud ai custom-jobs describe ${JOB_ID} --region=${REGION}")
    (shell.folder / "create.sh").write_text(TEXTS["CREATE"].replace("UNTIL", until))
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


# 3. A notebook: arrays to a bucket, a script on a processor and on a GPU.

TITANIC = "Survived,Pclass,Age\n1,1,30\n0,3,22\n1,2,41\n0,3,19\n"


def test_a_notebook_runs_from_its_first_cell_to_its_last(
    shell: Shell, gsutil: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ipython = _install_ipython(tmp_path_factory.mktemp("ipython"))
    here = str(shell.folder)
    cells = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [],
         "source": text.replace("HERE", here)}
        for text in TEXTS["CELLS"]
    ]  # fmt: skip
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (shell.folder / "titanic.ipynb").write_text(json.dumps(notebook))
    (shell.folder / "train_nn.py").write_text(TEXTS["TRAIN_NN"])
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

#: How the tutorial should have begun its scripts of pools: the client needs a bucket.
STAGING = f'aiplatform.init(project="{PROJECT}", location="us-central1", staging_bucket="gs://flash-example")'


@pytest.mark.parametrize("reason", TEXTS["pools"])
def test_unknown_field_of_a_pool_is_refused_by_the_client(shell: Shell, reason: str) -> None:
    more = TEXTS["pools"][reason].get("more", "")
    text = TEXTS["POOLS"].replace("INIT", STAGING if more else "").replace("MORE", more)
    (shell.folder / "pools.py").write_text(text)
    assert reason in shell.run("python pools.py", 1).stderr.splitlines()[-1]


@pytest.mark.parametrize("step", TEXTS["refused"])
def test_a_step_that_is_wrong_or_not_here_says_why(shell: Shell, gcloud: str, step: str) -> None:
    row = TEXTS["refused"][step]
    for name, text in row.get("files", {}).items():
        (shell.folder / name).write_text(text)
    said = shell.run(row["run"], row.get("code", 1)).stderr
    assert [text for text in row["told"] if text not in said] == []


def test_pools_with_a_reduction_server_end_with_a_reason(shell: Shell, gcloud: str) -> None:
    text = TEXTS["POOLS"].replace("INIT", STAGING).replace("MORE", TEXTS["REDUCTION"])
    (shell.folder / "reduction.py").write_text(text)
    shell.run("python reduction.py")
    assert "reduction server" in _error(shell, "distributed-training")


def _error(shell: Shell, name: str) -> str:
    """Why the newest job of this name FAILED."""
    call = f'gcloud ai custom-jobs list --region=us-central1 --filter="displayName={name}"'
    wait = f'until {call} --format="value(state)" | grep -q FAILED; do sleep 1; done'
    return shell.run(f'{wait}; {call} --format="value(error.message)"').stdout


def test_the_agent_gets_a_role_in_the_host_project(shell: Shell, gcloud: str) -> None:
    agent = "serviceAccount:service-123456789012@gcp-sa-aiplatform.iam.gserviceaccount.com"
    told = shell.run(
        f'gcloud projects add-iam-policy-binding local-network-project \\\n    --member="{agent}" '
        '\\\n    --role="roles/compute.networkUser"'
    ).stdout
    assert f"- {agent}" in told


def test_code_reads_the_variables_of_the_service_and_its_own(shell: Shell, gcloud: str) -> None:
    pool = (
        "- machineSpec: {machineType: n1-standard-4}\n  replicaCount: 1\n  containerSpec:\n"
        "    imageUri: python:3.11\n    command: [python3, -c, CODE]\n"
        "    env: [{name: MODEL_NAME, value: llama-2-7b}]\n"
    ).replace("CODE", json.dumps(TEXTS["CONFIG_CODE"]))
    (shell.folder / "nodes.yaml").write_text("workerPoolSpecs:\n" + pool + pool)
    describe = "gcloud ai custom-jobs describe $JOB --region=us-central1"
    done = shell.run(
        "JOB=$(gcloud ai custom-jobs create --region=us-central1 --display-name=nodes "
        f'--config=nodes.yaml --format="value(name)") && {until_ended(describe)} && '
        f"{read_log('$JOB')}"
    ).stdout
    assert "Model: llama-2-7b ['chief', 'worker']" in done


@pytest.mark.parametrize(
    ("sync", "reason"),
    [
        # As written: the client has no name yet when it is printed.
        ("False", "CustomJob resource has not been created"),
        ("True", "You do not have permission to act as service_account"),
    ],
)
def test_script_as_unknown_account_is_refused(shell: Shell, sync: str, reason: str) -> None:
    """The client's command would install the packages by pip, into a Python of this machine."""
    (shell.folder / "launch.py").write_text(TEXTS["LAUNCH"].replace("SYNC", sync))
    done = shell.run("python launch.py", 1)
    assert "Training script copied to" in done.stdout + done.stderr
    assert reason in done.stderr


# 5. A quick guide: two GPUs by gcloud and by the SDK, and a VM of one's own.


def test_pools_as_a_mapping_are_accepted(shell: Shell, gcloud: str) -> None:
    (shell.folder / "config.yaml").write_text(TEXTS["VM_CONFIG"])
    create = (
        "gcloud ai custom-jobs create \\\n  --region=us-central1 \\{}\n"
        "  --display-name=your-training-job \\\n  --config=config.yaml"
    )
    told = shell.run(create.format("  # Choose a region with GPU availability"), 127).stderr
    assert "unrecognized arguments" in told
    assert "is submitted successfully" in shell.run(create.format("")).stderr
    assert "Set containerSpec.command" in _error(shell, "your-training-job")


def test_no_vm_is_reached_and_no_key_is_made_for_it(shell: Shell, gcloud: str) -> None:
    before = _files_of_the_user()
    told = shell.run("gcloud compute ssh your-vm-name --zone=us-central1-a </dev/null", 1).stderr
    assert "instances/your-vm-name. docs/local-stack.md" in told
    assert _files_of_the_user() == before
