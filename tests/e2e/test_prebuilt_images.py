"""Tests prebuilt images of other frameworks than PyTorch, and their outputs in buckets.

TensorFlow is 1.4 GB: VT_LARGE_IMAGES=1 tests it too.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from localgcp.runner.executors import read_substitutes
from localgcp.runner.hosts import has_mounts
from localgcp.vertex.records import JobRecord, JobState
from tests.conftest import Checkout
from tests.e2e.small_stacks import MACHINE, PROGRAMS, SmallStack
from tests.unit.localcloud.conftest import wait_until

# The first job with an image waits for its environment.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]
#: The second is not here, and the nearest takes its place.
IMAGES = {
    "sklearn": "sklearn-cpu.1-6.py310",
    "sklearn-old": "sklearn-cpu.1-0",
    "xgboost": "xgboost-cpu.2-1.py310",
}
if os.environ.get("VT_LARGE_IMAGES"):
    IMAGES["tensorflow"] = "tf-cpu.2-17.py310"
#: Trains on real data, and writes where the service says: logs and metrics.
FIT = PROGRAMS["prebuilt_images"]["FIT"]


#: Runs as a command, with a library that the prebuilt images are documented to have.
REPORT = "import hypertune, sklearn; hypertune.HyperTune(); print(sklearn.__version__)"


def job(name: str) -> dict[str, Any]:
    image = f"us-docker.pkg.dev/vertex-ai/training/{IMAGES.get(name, IMAGES['sklearn'])}:latest"
    container = {"imageUri": image, "command": ["python", "-c", REPORT]}
    task = {
        "executorImageUri": image,
        "packageUris": ["${packages.fit}"],
        "pythonModule": "fit",
        "args": [name, *(["own-mount"] if has_mounts() else [])],
    }
    spec = {
        "serviceAccount": "${serviceAccounts.trainer}",
        "baseOutputDirectory": {"outputUriPrefix": "${buckets.artifacts}/${job.name}"},
        "scheduling": {"timeout": "900s"},
        "workerPoolSpecs": [
            {"replicaCount": 1, "machineSpec": MACHINE}
            | ({"pythonPackageSpec": task} if name in IMAGES else {"containerSpec": container})
        ],
    }
    return {"displayName": name, "jobSpec": spec}


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "prebuilt")
    (checkout.path / "jobs/fit.py").write_text(FIT)
    names = (*IMAGES, "command")
    made.write({name: job(name) for name in names}, packages={"fit": {"path": "jobs/fit.py"}})
    checkout.run("vt", "local", "start", "--prebuilt", "nearest")
    made.up()
    return made


def ended(stack: SmallStack, name: str) -> tuple[JobRecord, str]:
    """Return the job and its log after its end."""

    def found() -> JobRecord:
        return next(each for each in stack.jobs() if str(each.output_prefix).endswith(f"/{name}"))

    wait_until(lambda: found().state.terminal, 900)
    log = stack.home.jobs / found().job_id / "logs/workerpool0-0.log"
    return found(), log.read_text(errors="replace")


def test_command_has_the_packages_of_its_image(stack: SmallStack) -> None:
    job, log = ended(stack, "command")
    assert job.state is JobState.SUCCEEDED, log
    assert "with the Python and packages of sklearn-1.6" in log
    assert "\n1.6.1\n" in log


@pytest.mark.parametrize("name", ["sklearn", "sklearn-old", "xgboost", "tensorflow"])
def test_job_has_the_framework_of_its_image_and_stores_logs(stack: SmallStack, name: str) -> None:
    if name not in IMAGES:
        pytest.skip("its environment is 1.4 GB: VT_LARGE_IMAGES=1 tests it")

    job, log = ended(stack, name)
    assert job.state is JobState.SUCCEEDED, log
    home = stack.home
    folder = home.storage / str(job.output_prefix).removeprefix("gs://")
    said = json.loads((folder / "model/m.json").read_bytes())
    near = "on scikit-learn 1.6.1, not in sklearn-cpu.1-0"
    assert (near in read_substitutes(home, job.job_id)) == (name == "sklearn-old")
    version = (
        IMAGES[name.removesuffix("-old")].partition(".")[2].partition(".")[0].replace("-", ".")
    )
    assert said["version"].startswith(f"{version}.")
    assert said["accuracy"] > 0.6
    assert json.loads((folder / "logs/run1/events.out").read_bytes()) == said
    if has_mounts():
        assert json.loads((folder / "logs/made-at-run-time.json").read_bytes()) == said
