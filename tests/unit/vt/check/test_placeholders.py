"""Without a stack each reference of a job file stands for a value of the right form."""

import re

from tests.fixture_project import ROOT
from vertex_training_cli.check import checking

PROJECT = "placeholder-project"
ATTACHMENT = f"projects/{PROJECT}/regions/us-central1/networkAttachments/dev"
RESERVATION = f"projects/{PROJECT}/zones/us-central1-a/reservations/gpus"
SNAPSHOT = f"{PROJECT}-data-dev/snapshots/dev/clicks/{'0' * 20}"
IMAGE = f"us-central1-docker.pkg.dev/{PROJECT}/training-dev/trainer@sha256:{'0' * 64}"
#: One reference of each kind.
EXAMPLES = {
    "stack.name": "dev",
    "stack.project": PROJECT,
    "stack.projectNumber": "100000000000",
    "stack.region": "us-central1",
    "network.name": "projects/100000000000/global/networks/dev",
    "network.attachment": ATTACHMENT,
    "network.interface": {"networkAttachment": ATTACHMENT},
    "network.ranges.workers": "training-workers-dev",
    "buckets.data": f"gs://{PROJECT}-data-dev",
    "buckets.data.name": f"{PROJECT}-data-dev",
    "buckets.data.mount": f"/gcs/{PROJECT}-data-dev",
    "serviceAccounts.trainer": f"trainer-dev@{PROJECT}.iam.gserviceaccount.com",
    "secrets.api-key": f"projects/{PROJECT}/secrets/api-key-dev",
    "secrets.api-key.value": f"projects/{PROJECT}/secrets/api-key-dev/versions/latest#value",
    "packages.code": f"gs://{PROJECT}-staging-dev/packages/code-0000000000000000.tar.gz",
    "images.trainer": IMAGE,
    "reservations.gpus": {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [RESERVATION],
    },
    "reservations.gpus.name": RESERVATION,
    "snapshots.clicks": f"gs://{SNAPSHOT}",
    "snapshots.clicks.mount": f"/gcs/{SNAPSHOT}",
}


def test_each_kind_of_reference_has_its_value():
    assert checking.placeholders(b"a: ${network.ranges.workers}") == EXAMPLES


def test_a_file_that_is_too_large_to_be_read_gives_none():
    reference = b"${buckets.mine}"
    assert "buckets.mine" in checking.placeholders(reference.ljust(500_000))
    assert "buckets.mine" not in checking.placeholders(reference.ljust(500_001))


def test_every_kind_of_reference_is_on_its_page():
    page = (ROOT / "docs" / "job-files.md").read_text()
    listed = set(re.findall(r"\$\{([A-Za-z]+)\.", page)) | {"job"}
    assert set(checking.EXAMPLES) <= listed
