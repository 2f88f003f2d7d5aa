"""Prebuilt images of other frameworks than PyTorch have environments here; outputs are in buckets.

TensorFlow is 1.4 GB: VT_LARGE_IMAGES=1 tests it too.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from localgcp.runner import substitutes
from localgcp.runner.gang.hosts import has_mounts
from localgcp.vertex.records import JobRecord, JobState
from tests.conftest import Checkout
from tests.e2e.small_stacks import MACHINE, SmallStack
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
FIT = """\
import json, os, sys
from google.cloud import storage
from sklearn.datasets import load_iris

x, y = load_iris(return_X_y=True)
name = sys.argv[1].partition("-")[0]
if name == "sklearn":
    import sklearn as framework
    from sklearn.linear_model import LogisticRegression
    score = LogisticRegression(max_iter=500).fit(x[::2], y[::2]).score(x[1::2], y[1::2])
elif name == "xgboost":
    import xgboost as framework
    model = framework.XGBClassifier(n_estimators=10).fit(x[::2], y[::2])
    score = (model.predict(x[1::2]) == y[1::2]).mean()
else:
    import tensorflow as framework
    framework.keras.utils.set_random_seed(0)
    model = framework.keras.Sequential([framework.keras.layers.Dense(3, activation="softmax")])
    adam = framework.keras.optimizers.Adam(0.05)
    model.compile(adam, "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x[::2], y[::2], epochs=100, verbose=0)
    score = model.evaluate(x[1::2], y[1::2], verbose=0)[1]
said = {"version": framework.__version__, "accuracy": float(score)}
client = storage.Client()
for variable, file in (("AIP_MODEL_DIR", "m.json"), ("AIP_TENSORBOARD_LOG_DIR", "run1/events.out")):
    bucket, _, prefix = os.environ[variable].removeprefix("gs://").partition("/")
    client.bucket(bucket).blob(prefix + file).upload_from_string(json.dumps(said))
if sys.argv[2:] == ["own-mount"]:
    folder = os.path.join("/", "g" + "cs", bucket, prefix)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "made-at-run-time.json"), "w") as opened:
        json.dump(said, opened)
"""


def job(name: str) -> dict[str, Any]:
    task = {
        "executorImageUri": f"us-docker.pkg.dev/vertex-ai/training/{IMAGES[name]}:latest",
        "packageUris": ["${packages.fit}"],
        "pythonModule": "fit",
        "args": [name, *(["own-mount"] if has_mounts() else [])],
    }
    spec = {
        "serviceAccount": "${serviceAccounts.trainer}",
        "baseOutputDirectory": {"outputUriPrefix": "${buckets.artifacts}/${job.name}"},
        "scheduling": {"timeout": "900s"},
        "workerPoolSpecs": [{"replicaCount": 1, "machineSpec": MACHINE, "pythonPackageSpec": task}],
    }
    return {"displayName": name, "jobSpec": spec}


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "prebuilt")
    (checkout.path / "jobs/fit.py").write_text(FIT)
    made.write({name: job(name) for name in IMAGES}, packages={"fit": {"path": "jobs/fit.py"}})
    checkout.run("vt", "local", "start", "--prebuilt", "nearest")
    made.up()
    return made


@pytest.mark.parametrize("name", ["sklearn", "sklearn-old", "xgboost", "tensorflow"])
def test_a_job_has_the_framework_of_its_image_and_its_logs_are_in_the_bucket(
    stack: SmallStack, name: str
) -> None:
    if name not in IMAGES:
        pytest.skip("its environment is 1.4 GB: VT_LARGE_IMAGES=1 tests it")

    def found() -> JobRecord:
        return next(each for each in stack.jobs() if str(each.output_prefix).endswith(f"/{name}"))

    wait_until(lambda: found().state.terminal, 900)
    home = stack.home
    log = (home.jobs / found().job_id / "logs/workerpool0-0.log").read_text(errors="replace")
    assert found().state is JobState.SUCCEEDED, log
    folder = home.storage / str(found().output_prefix).removeprefix("gs://")
    said = json.loads((folder / "model/m.json").read_bytes())
    near = "on scikit-learn 1.6.1, not in sklearn-cpu.1-0"
    assert (near in substitutes.read(home, found().job_id)) == (name == "sklearn-old")
    version = (
        IMAGES[name.removesuffix("-old")].partition(".")[2].partition(".")[0].replace("-", ".")
    )
    assert said["version"].startswith(f"{version}.")
    assert said["accuracy"] > 0.6
    assert json.loads((folder / "logs/run1/events.out").read_bytes()) == said
    if has_mounts():
        assert json.loads((folder / "logs/made-at-run-time.json").read_bytes()) == said
