"""Grants on what others own are printed, and on what exists in the own project made."""

from tests.unit.infra.stacks import planned

SHARED = {
    "buckets": {
        "ours": {"existing": "acme-shared"},
        "theirs": {"existing": "acme-data", "project": "acme-data-1"},
    },
    "secrets": {"key": {"existing": "projects/acme-keys-1/secrets/wandb"}},
    "serviceAccounts": {
        "trainer": {"reads": ["theirs"], "writes": ["ours"], "secrets": ["key"]},
        "guest": {
            "existing": "guest-1@acme-people.iam.gserviceaccount.com",
            "reads": ["ours"],
            "writes": ["theirs"],
        },
    },
}


def test_references_name_what_exists():
    references = planned(**SHARED).references
    assert references["buckets.theirs"] == "gs://acme-data"
    assert references["secrets.key"] == "projects/acme-keys-1/secrets/wandb"
    assert references["serviceAccounts.guest"] == "guest-1@acme-people.iam.gserviceaccount.com"
