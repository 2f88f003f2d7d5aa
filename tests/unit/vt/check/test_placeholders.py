"""What stands for references where no stack is given: a value of the right form for each."""

from vertex_training_cli.check import placeholders

#: References that need no key, with what stands for them.
FIXED = {
    "stack.name": "dev",
    "stack.project": "placeholder-project",
    "stack.projectNumber": "100000000000",
    "stack.region": "us-central1",
    "network.name": "projects/100000000000/global/networks/dev",
    "network.attachment": (
        "projects/placeholder-project/regions/us-central1/networkAttachments/dev"
    ),
    "network.interface": {
        "networkAttachment": (
            "projects/placeholder-project/regions/us-central1/networkAttachments/dev"
        )
    },
}


def keyed(kind, key):
    """The references of a kind with this key."""
    bucket = f"placeholder-project-{key}-dev"
    secret = f"projects/placeholder-project/secrets/{key}-dev"
    reservation = f"projects/placeholder-project/zones/us-central1-a/reservations/{key}"
    snapshot = f"placeholder-project-data-dev/snapshots/dev/{key}/{'0' * 20}"
    return {
        "buckets": {
            f"buckets.{key}": f"gs://{bucket}",
            f"buckets.{key}.name": bucket,
            f"buckets.{key}.mount": f"/gcs/{bucket}",
        },
        "serviceAccounts": {
            f"serviceAccounts.{key}": (f"{key}-dev@placeholder-project.iam.gserviceaccount.com")
        },
        "secrets": {
            f"secrets.{key}": secret,
            f"secrets.{key}.value": f"{secret}/versions/latest#value",
        },
        "packages": {
            f"packages.{key}": (
                f"gs://placeholder-project-staging-dev/packages/{key}-0000000000000000.tar.gz"
            )
        },
        "images": {
            f"images.{key}": (
                "us-central1-docker.pkg.dev/placeholder-project/training-dev/"
                f"{key}@sha256:{'0' * 64}"
            )
        },
        "reservations": {
            f"reservations.{key}": {
                "reservationAffinityType": "SPECIFIC_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": [reservation],
            },
            f"reservations.{key}.name": reservation,
        },
        "snapshots": {
            f"snapshots.{key}": f"gs://{snapshot}",
            f"snapshots.{key}.mount": f"/gcs/{snapshot}",
        },
    }[kind]


#: One of each kind, which hints may name.
EXAMPLES = (
    FIXED
    | keyed("buckets", "data")
    | keyed("serviceAccounts", "trainer")
    | keyed("secrets", "api-key")
    | keyed("packages", "code")
    | keyed("images", "trainer")
    | keyed("reservations", "gpus")
    | keyed("snapshots", "clicks")
)


def test_a_reserved_range_is_named_after_its_stack():
    found = placeholders.table(b"a: ${network.ranges.workers}")
    assert found == EXAMPLES | {"network.ranges.workers": "training-workers-dev"}


def test_a_file_that_is_too_large_to_be_read_gives_none():
    reference = b"${buckets.mine}"
    assert "buckets.mine" in placeholders.table(reference.ljust(500_000))
    assert "buckets.mine" not in placeholders.table(reference.ljust(500_001))
