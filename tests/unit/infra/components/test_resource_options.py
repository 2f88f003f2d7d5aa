"""What the engine is asked for beside inputs: protection, the order of a replacement, parents."""

import pytest
from pulumi.runtime.mocks import MockMonitor

from tests.unit.infra.recorder import registered

OBJECT = "gcp:storage/bucketObject:BucketObject"
BUCKET = "gcp:storage/bucket:Bucket"


@pytest.fixture
def requested(monkeypatch):
    """Registers a stack's resources: name -> the request that the engine would get."""
    found = {}
    register = MockMonitor.RegisterResource

    def record(self, request):
        found[request.name] = request
        return register(self, request)

    def requests(stack, **changes):
        found.clear()
        registered(stack, **changes)
        return dict(found)

    monkeypatch.setattr(MockMonitor, "RegisterResource", record)
    return requests


def of_type(requests, type_):
    return {name: request for name, request in requests.items() if request.type == type_}


def test_an_object_is_deleted_before_its_replacement_has_its_name(requested):
    """Deleted after it, the old object would take the new one with it."""
    objects = of_type(requested("local"), OBJECT)
    kept = {name: r.deleteBeforeReplace for name, r in objects.items() if "storage-" in name}
    assert len(kept) == 3
    assert all(kept.values())


def test_a_package_stays_until_the_one_that_replaces_it_is_there(requested):
    [package] = [
        request
        for name, request in of_type(requested("local"), OBJECT).items()
        if name.startswith("packages-")
    ]
    assert not package.deleteBeforeReplace


def test_only_what_asks_for_it_is_protected(requested):
    buckets = {"data": {"protect": True}, "artifacts": {}}
    found = of_type(requested("dev", buckets=buckets, jobs={}), BUCKET)
    assert {name for name, request in found.items() if request.protect} == {"storage-data"}


def test_a_bucket_waits_until_storage_is_on(requested):
    for name, request in of_type(requested("dev"), BUCKET).items():
        assert any(urn.endswith("::apis-storage") for urn in request.dependencies), name


@pytest.mark.parametrize("stack", ["local", "prod", "peering"])
def test_every_resource_is_inside_of_a_component(requested, stack):
    for request in requested(stack).values():
        if request.type.startswith(("gcp:", "pulumi-python:")):
            assert "vertextraining:" in request.parent, request.name
