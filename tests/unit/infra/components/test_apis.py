"""Which APIs a stack turns on: those of the parts that it uses, and never off again."""

import pytest

from tests.unit.infra.stacks import stack, unjudged
from vertex_training.components.apis import needed

ALWAYS = {
    *("serviceusage", "cloudresourcemanager", "iam", "storage", "compute", "aiplatform"),
    *("artifactregistry", "logging"),
}
READER = {"trainer": {"datasets": {"acme-ml-prod.clicks": ["roles/bigquery.dataViewer"]}}}
IMAGE = {"context": "jobs/titanic", "digest": "sha256:" + "0" * 64}
KEY = "projects/acme-ml-prod/locations/us-central1/keyRings/ml/cryptoKeys/training"


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({}, set()),
        ({"secrets": {"key": {}}}, {"secretmanager"}),
        ({"serviceAccounts": READER}, {"bigquery", "bigquerystorage"}),
        ({"serviceAccounts": {"trainer": {}}}, set()),
        ({"registry": {"scanning": True}}, {"containerscanning"}),
        ({"encryption": {"key": KEY}}, {"cloudkms"}),
    ],
)
def test_a_part_of_a_stack_file_asks_for_its_apis_and_for_no_other(given, more):
    found = needed(stack(**given))
    assert len(found) == len(set(found))
    assert set(found) == ALWAYS | more


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({"jobs": {"train": {"file": "t.yaml"}}}, set()),
        ({"jobs": {"train": {"file": "t.yaml", "backend": "batch"}}}, {"batch"}),
        ({"jobs": {"train": {"file": "t.yaml", "idleStop": "5% for 30m"}}}, {"monitoring"}),
        ({"snapshots": {"clicks": {"query": "q.sql", "maxBytesBilled": 1}}}, {"bigquery"}),
        ({"images": {"titanic": IMAGE}}, {"cloudbuild"}),
        ({"images": {"titanic": {"digest": IMAGE["digest"]}}}, set()),
    ],
)
def test_files_that_a_stack_names_ask_for_their_apis(given, more):
    assert set(needed(unjudged(**given))) == ALWAYS | more
