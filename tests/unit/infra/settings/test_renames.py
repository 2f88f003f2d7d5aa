"""A renamed entry is the same thing to everything but the stack file."""

from pathlib import Path

import pytest

from tests.unit.infra.stacks import BASE, H100, unjudged
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


def keys(found: Stack) -> dict[tuple[str, ...], list[str]]:
    return {section: sorted(found.declared.entries(section)) for section in SECTIONS}


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
