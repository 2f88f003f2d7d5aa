"""With ``encryption`` everything that the stack stores has the key, and waits for its grants."""

from tests.unit.infra.recorder import registered

KEY = "projects/local-training/locations/us-central1/keyRings/ml/cryptoKeys/training"


def test_everything_that_is_stored_has_the_key():
    found = registered("local", encryption={"key": KEY})
    of_type = {
        name: inputs
        for name, (type_, inputs) in found.items()
        if type_.endswith((":Bucket", ":Repository", ":Secret"))
    }
    assert of_type["registry-docker"]["kmsKeyName"] == KEY
    replicas = of_type["secrets-wandb-api-key"]["replication"]["userManaged"]["replicas"]
    assert replicas == [
        {"location": "us-central1", "customerManagedEncryption": {"kmsKeyName": KEY}}
    ]
    buckets = [inputs for name, inputs in of_type.items() if name.startswith("storage-")]
    assert len(buckets) == 4
    assert {bucket["encryption"]["defaultKmsKeyName"] for bucket in buckets} == {KEY}
    agents = {inputs["service"] for name, (_, inputs) in found.items() if name.endswith("-agent")}
    assert agents == {
        "aiplatform.googleapis.com",
        "storage.googleapis.com",
        "artifactregistry.googleapis.com",
        "secretmanager.googleapis.com",
    }
    grants = [
        inputs["member"].partition("@")[2].partition(".")[0]
        for _, (type_, inputs) in found.items()
        if type_.endswith("CryptoKeyIAMMember")
    ]
    assert sorted(grants) == [
        "gcp-sa-aiplatform",
        "gcp-sa-artifactregistry",
        "gcp-sa-secretmanager",
        "gs-project-accounts",
    ]
    assert "apis-cloudkms" in found


def test_what_is_not_covered_keeps_googles_key():
    found = registered("local", encryption={"key": KEY, "covers": ["secrets"]})
    assert "kmsKeyName" not in found["registry-docker"][1]
    assert "encryption" not in found["storage-data"][1]
    assert "apis-cloudkms" in found
