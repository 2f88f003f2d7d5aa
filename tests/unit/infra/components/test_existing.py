"""What exists is granted on and never made."""

from tests.unit.infra.recorder import registered

ACCOUNT = "guest-1@local-training.iam.gserviceaccount.com"
SHARED = {
    "buckets": {
        "data": {"existing": "acme-shared"},
        "artifacts": {"existing": "acme-artifacts", "project": "local-elsewhere"},
    },
    "secrets": {"wandb-api-key": {"existing": "projects/local-training/secrets/wandb"}},
    "serviceAccounts": {
        "trainer": {
            "existing": ACCOUNT,
            "reads": ["data"],
            "writes": ["artifacts"],
            "secrets": ["wandb-api-key"],
        }
    },
}


def test_only_grants_are_made_on_what_exists_and_only_in_the_own_project():
    found = registered("local", **SHARED)
    types = {name: type_.rpartition(":")[2] for name, (type_, _) in found.items()}
    assert "Account" not in types.values()
    assert "Secret" not in types.values()
    buckets = {name for name, type_ in types.items() if type_ == "Bucket"}
    assert buckets == {"storage-staging", "storage-control"}
    grants = {
        name: (inputs["member"], inputs.get("bucket") or inputs.get("secretId") or "")
        for name, (type_, inputs) in found.items()
        if type_.endswith("Member") and name.startswith("trainer")
    }
    member = f"serviceAccount:{ACCOUNT}"
    assert grants == {
        "trainer-reads-data": (member, "acme-shared"),
        "trainer-reads-staging": (member, "local-training-staging-local"),
        "trainer-reads-secret-wandb-api-key": (member, "projects/local-training/secrets/wandb"),
        "trainer-logs": (member, ""),
        "trainer-submitter-group:ml-engineers@example.com": ("group:ml-engineers@example.com", ""),
    }


def test_names_of_ones_own_are_the_names_in_the_cloud():
    found = registered(
        "local",
        buckets={"data": {"name": "acme-data"}, "artifacts": {}},
        secrets={"wandb-api-key": {"name": "WANDB"}},
        serviceAccounts={
            "trainer": {
                "name": "ml-trainer",
                "reads": ["data"],
                "writes": ["artifacts"],
                "secrets": ["wandb-api-key"],
            }
        },
    )
    assert found["storage-data"][1]["name"] == "acme-data"
    assert found["secrets-wandb-api-key"][1]["secretId"] == "WANDB"
    assert found["trainer-account"][1]["accountId"] == "ml-trainer"
    assert found["trainer-submitter-group:ml-engineers@example.com"][1][
        "serviceAccountId"
    ].endswith("ml-trainer@local-training.iam.gserviceaccount.com")
