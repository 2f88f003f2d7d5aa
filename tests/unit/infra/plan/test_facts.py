"""What rules may know of a stack follows from its config."""

from vertex_training.plan.facts import stack_facts
from vertex_training.stack import read_settings

RAW = {
    "stack": "dev",
    "project": "acme-ml-dev",
    "region": "us-central1",
    "projectNumber": "210987654321",
    "buckets": {"data": {}, "artifacts": {}},
    "secrets": {"wandb": {}},
    "serviceAccounts": {
        "trainer": {"reads": ["data"], "writes": ["artifacts"], "secrets": ["wandb"]},
        "watcher": {"reads": ["artifacts"]},
    },
}
TRAINER = "trainer-dev@acme-ml-dev.iam.gserviceaccount.com"
WATCHER = "watcher-dev@acme-ml-dev.iam.gserviceaccount.com"


def test_who_reads_and_writes_follows_from_the_accounts(tmp_path):
    facts = stack_facts(read_settings(RAW, tmp_path), None, {})
    assert facts.accounts == {TRAINER, WATCHER}
    data, artifacts = (
        facts.buckets["acme-ml-dev-data-dev"],
        facts.buckets["acme-ml-dev-artifacts-dev"],
    )
    assert (data.readers, data.writers) == ({TRAINER}, set())
    assert (artifacts.readers, artifacts.writers) == ({TRAINER, WATCHER}, {TRAINER})
    assert facts.secrets == {"projects/acme-ml-dev/secrets/wandb-dev": {TRAINER}}


def test_packages_may_be_read_and_the_records_of_submissions_may_not(tmp_path):
    facts = stack_facts(read_settings(RAW, tmp_path), None, {})
    assert facts.buckets["acme-ml-dev-staging-dev"].readers == {TRAINER, WATCHER}
    control = facts.buckets["acme-ml-dev-control-dev"]
    assert not control.readers
    assert not control.writers
