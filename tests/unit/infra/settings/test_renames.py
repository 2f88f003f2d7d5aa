"""A renamed entry is the same thing to everything but the stack file."""

from pathlib import Path

import pytest

from tests.unit.infra.stacks import BASE, H100, PEERING, planned, unjudged
from vertex_training.settings import renames
from vertex_training.settings.model import SECTIONS
from vertex_training.stack import Stack, from_raw

JOB = """\
serviceAccount: ${serviceAccounts.ACCOUNT}
baseOutputDirectory: {outputUriPrefix: "${buckets.OUT}/${job.name}"}
workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    containerSpec: {imageUri: "${images.x}", args: ["--data=${buckets.DATA}", "${secrets.KEY}"]}
"""
IMAGES = {"x": {"digest": "sha256:" + "a" * 64}}
OLD = {"ACCOUNT": "trainer", "DATA": "data", "OUT": "out", "KEY": "key"}


def stack(root: Path, names: dict[str, str], job: str, **formerly: str) -> Stack:
    """One job with buckets, an account and a secret of these names; ``formerly`` by new name."""

    def entry(key: str, **fields: object) -> dict[str, object]:
        return {**fields, **({"formerly": formerly[key]} if key in formerly else {})}

    text = JOB
    for placeholder, name in names.items():
        text = text.replace(placeholder, name)
    (root / "job.yaml").write_text(text)
    data, out, key = names["DATA"], names["OUT"], names["KEY"]
    account = entry(names["ACCOUNT"], reads=[data], writes=[out], secrets=[key])
    raw = {
        "buckets": {data: entry(data), out: entry(out)},
        "secrets": {key: entry(key)},
        "serviceAccounts": {names["ACCOUNT"]: account},
        "images": IMAGES,
        "jobs": {job: entry(job, file="job.yaml")},
    }
    return from_raw(BASE | raw, root)


def request_of(found: Stack) -> tuple[str, str]:
    [result] = found.check_jobs().values()
    assert result.request, result.errors
    return result.request.request_id, result.request.body


def keys(found: Stack) -> dict[tuple[str, ...], list[str]]:
    return {section: sorted(found.declared.entries(section)) for section in SECTIONS}


RENAMES = {
    "once": (
        {"ACCOUNT": "runner", "DATA": "corpus", "OUT": "models", "KEY": "token"},
        "fit",
        {"runner": "trainer", "corpus": "data", "models": "out", "token": "key", "fit": "train"},
    ),
    "two that change names": ({**OLD, "DATA": "out", "OUT": "data"}, "train",
                              {"out": "data", "data": "out"}),
}  # fmt: skip


@pytest.mark.parametrize(("names", "job", "formerly"), RENAMES.values(), ids=list(RENAMES))
def test_a_rename_changes_no_request_and_no_name(tmp_path, names, job, formerly):
    before = stack(tmp_path, OLD, "train")
    request, resources = request_of(before), keys(before)
    after = stack(tmp_path, names, job, **formerly)
    assert request_of(after) == request
    assert keys(after) == resources
    trainer = after.declared.service_accounts["trainer"]
    assert (trainer.reads, trainer.writes, trainer.secrets) == (["data"], ["out"], ["key"])


def test_results_and_references_go_by_the_new_names(tmp_path):
    names, job, formerly = RENAMES["once"]
    found = stack(tmp_path, names, job, **formerly)
    assert list(found.check_jobs()) == ["fit"]
    assert found.references["buckets.corpus"] == "gs://acme-ml-prod-data-prod"
    assert "buckets.data" not in found.references
    assert found.references["buckets.corpus.mount"] == "/gcs/acme-ml-prod-data-prod"
    urls = {"data": 1, "out": 2, "staging": 3}
    assert found.by_new_keys(("buckets",), urls) == {"corpus": 1, "models": 2, "staging": 3}


def test_an_edit_beside_the_rename_is_the_same_new_request_as_without_it(tmp_path):
    before = request_of(stack(tmp_path, OLD, "train"))
    renamed = stack(tmp_path, OLD, "fit", fit="train")
    edited = (tmp_path / "job.yaml").read_text().replace("n1-standard-4", "n1-standard-8")
    (tmp_path / "job.yaml").write_text(edited)
    both = request_of(renamed)
    assert both != before
    plain = stack(tmp_path, OLD, "train")
    (tmp_path / "job.yaml").write_text(edited)
    assert request_of(plain) == both


def test_ranges_rules_and_reservations_keep_their_names():
    workers, nfs = {"prefixLength": 16}, {"destinationRanges": ["10.9.0.0/24"]}
    cpu = {"zone": "us-central1-a", "machineType": "n1-standard-4", "count": 1}
    before = planned(
        network=PEERING | {"ranges": {"workers": workers}, "allow": {"nfs": nfs}},
        reservations={"cpu": cpu},
    )
    after = planned(
        network=PEERING
        | {
            "ranges": {"machines": {**workers, "formerly": "workers"}},
            "allow": {"files": {**nfs, "formerly": "nfs"}},
        },
        reservations={"spare": {**cpu, "formerly": "cpu"}},
    )
    assert before.network
    assert after.network
    assert after.network.ranges == before.network.ranges
    assert list(after.declared.network.allow) == ["nfs"]
    assert [plan.path for plan in after.reservations.values()] == [
        plan.path for plan in before.reservations.values()
    ]
    assert after.references["network.ranges.machines"] == "training-workers-prod"
    assert "reservations.spare" in after.references
    assert "reservations.cpu" not in after.references


def test_a_stack_without_renames_is_left_as_it_is():
    found = planned()
    assert found.declared is found.settings


FILE, IMAGE = {"file": "x"}, {"container": {"image": "x"}}
SERVED = {"machine": "n1-standard-2", "split": {"run 1": 100}}
QUERY = {"query": "q", "maxBytesBilled": 1}
ALL = {
    "buckets": {"b": {"formerly": "b-old"}, "kept": {}},
    "secrets": {"s": {"formerly": "s-old"}, "kept": {}},
    "serviceAccounts": {
        "a": {"formerly": "a-old", "reads": ["b", "kept"], "writes": ["kept", "b"],
              "secrets": ["kept", "s"]},
        "kept": {},
    },
    "snapshots": {"p": {"formerly": "p-old", "bucket": "b", **QUERY},
                  "kept": {"bucket": "kept", **QUERY}},
    "jobs": {"j": {"formerly": "j-old", **FILE}, "kept": FILE},
    "tuning": {"t": {"formerly": "t-old", **FILE}},
    "reservations": {"r": {"formerly": "r-old", **H100}},
    "models": {"m": {"formerly": "m-old", "run": 1, "job": "kept", **IMAGE},
               "j": {"run": 1, **IMAGE}, "kept": {"run": 1, "job": "j", **IMAGE}},
    "endpoints": {"e": {"formerly": "e-old", "model": "kept", "account": "a", **SERVED},
                  "m": SERVED, "kept": {"model": "m", "account": "kept", **SERVED}},
    "network": {"ranges": {"n": {"formerly": "n-old", "prefixLength": 16}},
                "allow": {"w": {"formerly": "w-old", "destinationRanges": ["10.9.0.0/24"]}}},
}  # fmt: skip


def test_every_entry_is_under_its_first_key_and_so_is_what_names_it():
    found = renames.with_first_keys(unjudged(**ALL))
    assert {section: list(found.entries(section)) for section in SECTIONS} == {
        ("buckets",): ["b-old", "kept"],
        ("serviceAccounts",): ["a-old", "kept"],
        ("secrets",): ["s-old", "kept"],
        ("snapshots",): ["p-old", "kept"],
        ("jobs",): ["j-old", "kept"],
        ("tuning",): ["t-old"],
        ("reservations",): ["r-old"],
        ("models",): ["m-old", "j", "kept"],
        ("endpoints",): ["e-old", "m", "kept"],
        ("network", "ranges"): ["n-old"],
        ("network", "allow"): ["w-old"],
    }
    account = found.service_accounts["a-old"]
    assert (account.reads, account.writes, account.secrets) == (
        ["b-old", "kept"], ["kept", "b-old"], ["kept", "s-old"],
    )  # fmt: skip
    assert [each.bucket for each in found.snapshots.values()] == ["b-old", "kept"]
    assert [each.job for each in found.models.values()] == ["kept", "j-old", "j-old"]
    assert [(each.model, each.account) for each in found.endpoints.values()] == [
        ("kept", "a-old"), ("m-old", None), ("m-old", "kept"),
    ]  # fmt: skip


NAMED = {
    "buckets": ("bucket",),
    "serviceAccounts": ("account_id", "account_email", "account"),
    "secrets": ("secret_id", "secret"),
    "reservations": ("reservation",),
    "models": ("model_id",),
    "endpoints": ("endpoint_id",),
    "network ranges": ("ip_range",),
    "network allow": ("firewall",),
}


@pytest.mark.parametrize("section", NAMED)
def test_names_are_the_same_by_a_new_key_and_by_the_first_one(section):
    sections = unjudged(**ALL)
    declared = renames.with_first_keys(sections)
    keys = renames.first_keys(sections, tuple(section.split()))
    assert any(key != first for key, first in keys.items())
    for name in NAMED[section]:
        by_new = {key: getattr(sections.names, name)(key) for key in keys}
        assert by_new == {key: getattr(declared.names, name)(keys[key]) for key in keys}


def test_entries_that_changed_places_have_each_its_own_name():
    swapped = {"a": {"formerly": "b"}, "b": {"formerly": "a", "name": "acme-a"}}
    found = unjudged(buckets=swapped)
    for settings, keys in ((found, "ab"), (renames.with_first_keys(found), "ba")):
        names = [settings.names.bucket(key) for key in keys]
        assert names == ["acme-ml-prod-b-prod", "acme-a"]


@pytest.mark.parametrize("section", [["buckets"], ["endpoints"], ["network", "allow"]])
def test_one_rename_is_enough(section):
    given = ALL
    for part in section:
        given = given[part]
    sections = {section[0]: {section[1]: given} if section[1:] else given}
    found = renames.with_first_keys(unjudged(**sections))
    first = next(iter(given.values()))["formerly"]
    assert next(iter(found.entries(tuple(section)))) == first


def test_references_go_by_the_new_keys_at_any_depth():
    given = {
        "buckets.b-old": "b", "buckets.b-old.mount": "b.mount", "buckets.kept": "kept",
        "serviceAccounts.a-old.member": "a", "network": "net",
        "network.ranges.n-old": "n", "network.ranges.n-old.x": "n.x", "network.subnet": "sub",
        "network.ranges": "all", "reservations.r-old.name": "r", "job.b-old": "none",
    }  # fmt: skip
    assert renames.with_new_keys(unjudged(**ALL), given) == {
        "buckets.b": "b", "buckets.b.mount": "b.mount", "buckets.kept": "kept",
        "serviceAccounts.a.member": "a", "network": "net", "network.ranges.n": "n",
        "network.ranges.n.x": "n.x", "network.subnet": "sub", "network.ranges": "all",
        "reservations.r.name": "r", "job.b-old": "none",
    }  # fmt: skip


def test_a_network_changes_the_keys_of_its_own_entries_alone() -> None:
    ranges = {"new": {"prefixLength": 16, "formerly": "old"}, "kept": {"prefixLength": 18}}
    given = unjudged(network={"mode": "peering", "ranges": ranges}, buckets={"data": {}})
    found = renames.with_first_keys(given)
    assert dict(found.network) == dict(given.network) | {
        "ranges": {"old": given.network.ranges["new"], "kept": given.network.ranges["kept"]}
    }
    assert found.buckets == given.buckets
