"""What the engine is asked for beside inputs: protection, the order of a replacement, parents."""

import pytest
from pulumi.runtime.mocks import MockMonitor

from tests.unit.infra.recorder import registered

OBJECT = "gcp:storage/bucketObject:BucketObject"
BUCKET = "gcp:storage/bucket:Bucket"
PROTECTION = "vertextraining:protection:Protection"


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


@pytest.mark.parametrize(
    ("section", "type_"),
    [
        ({"secrets": {"wandb-api-key": {"protect": True}}}, "gcp:secretmanager/secret:Secret"),
        ({"registry": {"protect": True}}, "gcp:artifactregistry/repository:Repository"),
        ({"buckets": {"data": {"protect": True}, "artifacts": {}}}, BUCKET),
    ],
)
def test_what_is_protected_protects_the_whole_stack_from_a_destroy(requested, section, type_):
    found = requested("local", **section)
    protected = {request.type for request in found.values() if request.protect}
    assert protected == {type_, PROTECTION}


@pytest.mark.parametrize("stack", ["local", "dev", "prod", "peering"])
def test_what_protects_goes_before_everything_else(requested, stack):
    found = requested(stack)
    reached, open_ = set(), ["protection"]
    while open_:
        request = found[open_.pop()]
        named = {urn.rpartition("::")[2] for urn in (*request.dependencies, request.parent)}
        open_ += (named & set(found)) - reached
        reached |= named
    assert set(found) - reached <= {"protection"}


def test_an_unprotected_stack_has_it_too_so_that_it_can_be_deleted(requested):
    [guard] = of_type(requested("dev"), PROTECTION).values()
    assert not guard.protect


def test_a_bucket_waits_until_storage_is_on(requested):
    for name, request in of_type(requested("dev"), BUCKET).items():
        assert any(urn.endswith("::apis-storage") for urn in request.dependencies), name


@pytest.mark.parametrize("stack", ["local", "prod", "peering"])
def test_every_resource_is_inside_of_a_component(requested, stack):
    for request in requested(stack).values():
        if request.type.startswith(("gcp:", "pulumi-python:")):
            assert "vertextraining:" in request.parent, request.name


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, False),
        ({"onChange": "finish"}, True),
        (
            {"jobs": {"titanic": {"file": "jobs/titanic.yaml", "onChange": "finish"}}},
            True,
        ),
        (
            {"jobs": {"titanic": {"file": "jobs/titanic.yaml", "schedule": {"cron": "0 6 * * 1"}}}},
            True,
        ),
    ],
)
def test_old_code_is_kept_for_jobs_that_go_on_after_a_change(requested, changes, kept):
    [package] = [
        request
        for name, request in requested("local", **changes).items()
        if name.startswith("packages-")
    ]
    assert package.type == OBJECT
    assert bool(package.retainOnDelete) is kept


def test_what_google_s_agents_may_do_with_things_of_others_stays_when_a_stack_goes(requested):
    key = "projects/local-training/locations/us-central1/keyRings/ml/cryptoKeys/k"
    found = requested("local", encryption={"key": key})
    members = [request for request in found.values() if request.type.lower().endswith("iammember")]
    kept = {request.type.rpartition(":")[2] for request in members if request.retainOnDelete}
    assert kept == {"CryptoKeyIAMMember"}
    on_keys = [request for request in members if "CryptoKey" in request.type]
    assert all(request.retainOnDelete for request in on_keys)
