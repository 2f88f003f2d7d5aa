"""How long the name of an image may be, and which rules have a word about one that is wrong."""

import pytest

from tests.unit.infra.customjob.rules.test_limits import told

HOST = "us-central1-docker.pkg.dev/acme/train/"
LONGEST = HOST + "x" * (1000 - len(HOST) - 3) + ":v1"
JOB = """\
jobSpec:
  workerPoolSpecs:
    - machineSpec: {machineType: n1-standard-4}
      replicaCount: 1
      containerSpec: {imageUri: '%s'}
  serviceAccount: ${serviceAccounts.trainer}
"""
PATH = "jobSpec.workerPoolSpecs[0].containerSpec.imageUri"


@pytest.mark.parametrize(
    ("image", "rules"),
    [
        (LONGEST, []),
        (LONGEST.replace("x:", "xx:"), ["image-name"]),
        ("gcr.io/acme/x:v1", ["image-registry"]),
        ("gcr.io/acme/x y:latest", ["image-name"]),
        ("gcr.io/acme", ["image-name", "image-registry"]),
        (f"{HOST}x:latest", ["image-pinned"]),
        (f"{HOST}x@sha256:0", ["image-name"]),
        ("us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:v1", ["prebuilt-tag"]),
        ("us-docker.pkg.dev/vertex-ai/training/pytorch-cpu.2-4.py310:latest", ["prebuilt-name"]),
    ],
)
def test_an_image_breaks_these_rules(image: str, rules: list[str]) -> None:
    found = [(rule, path) for rule, path, _ in told(JOB % image) if rule != "image-age"]
    assert found == [(rule, PATH) for rule in rules]
