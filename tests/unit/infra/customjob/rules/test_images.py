"""How long the name of an image may be, and which rules have a word about one that is wrong."""

import datetime

import pytest

from tests.unit.infra.customjob.rules.test_limits import TABLE, WHO, told
from vertex_training.customjob.request import job_file
from vertex_training.customjob.rules.context import Context

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


@pytest.mark.parametrize(
    ("image", "meant"),
    [
        ("pytorch-xal.2-4.py310", "pytorch-xla.2-4.py310"),
        ("pytorch-gpuu.2-4.py310", "pytorch-gpu.2-4.py310"),
        ("tf-cpuu.2-17.py310", "tf-cpu.2-17.py310"),
        ("tf-tpuu.2-17.py310", "tf-tpu.2-17.py310"),
        ("pytorhc-gpu.2-4.py310", "pytorch-gpu.2-4.py310"),
    ],
)
def test_a_misspelt_prebuilt_image_is_told_with_the_one_that_was_meant(
    image: str, meant: str
) -> None:
    text = JOB % f"us-docker.pkg.dev/vertex-ai/training/{image}:latest"
    context = Context(today=datetime.date(2026, 7, 1))
    result = job_file.check_job_file(text.encode(), "x.yaml", WHO, TABLE, context)
    assert [p.hint for p in result.problems if p.rule == "prebuilt-name"] == [
        f"did you mean '{meant}'?"
    ]
