"""The schema of the stand-in's package has what hosts of other languages ask for."""

import inspect

import pulumi_gcp as gcp

from localgcp.gcp.package_schema import package_schema

SCHEMA = package_schema("9.35.0")
BUCKET = SCHEMA["resources"]["gcp:storage/bucket:Bucket"]


def test_an_explicit_provider_takes_what_the_sdk_lets_it_take():
    of_sdk = {*inspect.signature(gcp.Provider._internal_init).parameters} - {
        "__self__",
        "__props__",
    }
    found = SCHEMA["provider"]["inputProperties"]
    spelled = {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): name for name in found}
    others = {name for name in of_sdk - set(spelled) if not name.endswith("_custom_endpoint")}
    assert others == {"resource_name", "opts", "batching", "external_credentials"}
    assert set(spelled) <= of_sdk
    assert found["impersonateServiceAccountDelegates"]["items"] == {"type": "string"}


def test_what_pulumi_names_itself_is_not_required():
    assert BUCKET["requiredInputs"] == ["location"]
    assert "name" in BUCKET["inputProperties"]


def test_what_only_the_service_knows_is_no_input():
    assert "url" in BUCKET["properties"]
    assert "url" not in BUCKET["inputProperties"]


def test_types_are_those_of_the_wire():
    properties = BUCKET["inputProperties"]
    assert properties["forceDestroy"] == {"type": "boolean"}
    assert properties["labels"]["additionalProperties"] == {"type": "string"}
    assert properties["cors"]["items"] == {"$ref": "#/types/gcp:storage/BucketCors:BucketCors"}
    cors = SCHEMA["types"]["gcp:storage/BucketCors:BucketCors"]["properties"]
    assert cors["maxAgeSeconds"] == {"type": "integer"}
    assert cors["methods"] == {"type": "array", "items": {"type": "string"}}
