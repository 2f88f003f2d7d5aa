"""Names that Google Cloud would refuse, and keys of what is not there: whole reports."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import rows, unjudged
from vertex_training.stack_rules import names

Rows = list[tuple[str, str, str, str]]
FILE = {"file": "x"}
LONG = "makes a bucket name longer than 63"
GOOGLE = "makes a bucket name that begins with goog or contains google: it is refused"
LABEL = "the stack sets this label itself"
OWN_BUCKET = (
    "is a bucket of the stack's own",
    "jobs get read access to packages by themselves, and none to records",
)
KEY_RULE = (
    "must be 1 to 63 characters: lowercase letters, digits, '_' and '-', starting with a letter"
)


def told(**sections: Any) -> Rows:
    return rows(names.problems(unjudged(**sections)))


@pytest.mark.parametrize("key", ["staging", "control"])
def test_the_stack_makes_two_buckets_itself(key: str) -> None:
    assert told(buckets={key: {}, "data": {}}) == [
        (f"buckets.{key}", "the stack makes this bucket itself", key, "rename it")
    ]


def test_the_name_of_a_bucket_has_63_characters_and_no_google() -> None:
    project = "p" * 30
    found = told(project=project, buckets={"k" * 27: {}, "k" * 28: {}, "b": {"formerly": "f" * 28}})
    assert found == [
        (f"buckets.{'k' * 28}", LONG, f"{project}-{'k' * 28}-prod", "shorten it"),
        ("buckets.b", LONG, f"{project}-{'f' * 28}-prod", "shorten it"),
    ]
    given = {"google": {}, "goog": {}, "a": {"name": "goog-x"}, "b": {"name": "my-g00gle-x"}}
    assert told(buckets=given) == [
        ("buckets.google", GOOGLE, "acme-ml-prod-google-prod", "choose another name"),
        ("buckets.a", GOOGLE, "goog-x", "choose another name"),
        ("buckets.b", GOOGLE, "my-g00gle-x", "choose another name"),
    ]


def test_labels_are_neither_the_stacks_nor_googles_and_have_their_form() -> None:
    labels = {
        "stack": "x", "vt-run": "1", "managed-by": "y", "goog-x": "1", "googly": "", "Team": "ml",
        "fine": "yes", "long": "x" * 64, "longest": "x" * 63,
    }  # fmt: skip
    theirs = "label key '{}' begins with goog, as Google's own do: rename it"
    assert told(labels=labels) == [
        ("labels.stack", LABEL, "x", "remove it"),
        ("labels.vt-run", LABEL, "1", "remove it"),
        ("labels.managed-by", LABEL, "y", "remove it"),
        ("labels.goog-x", theirs.format("goog-x"), "1", ""),
        ("labels.googly", theirs.format("googly"), "", ""),
        ("labels.Team", f"label key 'Team' {KEY_RULE}", "ml", ""),
        ("labels.long", "value of label 'long' must be at most 63 lowercase letters, digits, '_' "
         "and '-'", "x" * 64, ""),
    ]  # fmt: skip
    own = {"stack": "x", "Team": "y", "fine": "z", "goog-x": "1", "my-goog": "z"}
    assert told(buckets={"d": {"labels": own}}, secrets={"k": {"labels": own}}) == [
        row
        for place in ("buckets.d", "secrets.k")
        for row in (
            (f"{place}.labels.stack", LABEL, "x", "remove it"),
            (f"{place}.labels.Team", f"label key 'Team' {KEY_RULE}", "y", ""),
            (f"{place}.labels.goog-x", theirs.format("goog-x"), "1", ""),
        )
    ]


@pytest.mark.parametrize(("count", "too_many"), [(55, False), (56, True)])
def test_a_stack_has_55_labels_beside_those_that_it_sets(count: int, too_many: bool) -> None:
    hint = "at most 55: a resource has 64, some are the stack's"
    found = [("labels", "too many labels", str(count), hint)] if too_many else []
    assert told(labels={f"l{number}": "x" for number in range(count)}) == found
    # A team has one more by itself, and its own.
    labels, own = {f"l{number}": "x" for number in range(count - 3)}, {"a": "x", "b": "x", "l1": ""}
    what = "too many labels, with those of the stack"
    found = [("teams.v.labels", what, str(count), hint)] if too_many else []
    assert told(labels=labels, teams={"v": {"labels": own}}) == found


def test_a_stack_that_builds_images_makes_an_account_for_that() -> None:
    built = {"a": {"context": "jobs/x"}}
    own = "the stack makes this account itself"
    assert told(images=built, serviceAccounts={"image-build": {}}) == [
        ("serviceAccounts.image-build", own, "image-build", "rename it")
    ]
    assert told(serviceAccounts={"image-build": {}}) == []
    assert told(images=built, stack="s" * 18) == told(stack="s" * 19) == []
    what = "the account that builds images would have an id longer than 30 characters"
    assert told(images=built, stack="s" * 19) == [
        ("images", what, f"image-build-{'s' * 19}", "shorten the stack's name")
    ]


def test_what_an_account_uses_is_there_and_not_the_stacks_own() -> None:
    account = {
        "reads": ["data", "dat", "staging"],
        "writes": ["control", "dta"],
        "secrets": ["key", "kei", "staging"],
    }
    found = told(serviceAccounts={"trainer": account}, buckets={"data": {}}, secrets={"key": {}})
    bucket, secret = (f"this stack has no such {kind}" for kind in ("bucket", "secret"))
    what, hint = OWN_BUCKET
    assert found == [
        ("serviceAccounts.trainer.reads.1", bucket, "dat", "did you mean 'data'?"),
        ("serviceAccounts.trainer.reads.2", what, "staging", hint),
        ("serviceAccounts.trainer.writes.0", what, "control", hint),
        ("serviceAccounts.trainer.writes.1", bucket, "dta", "did you mean 'data'?"),
        ("serviceAccounts.trainer.secrets.1", secret, "kei", "did you mean 'key'?"),
        ("serviceAccounts.trainer.secrets.2", secret, "staging", "known here: key"),
    ]


def test_a_former_name_belongs_to_one_entry() -> None:
    own = "is what the stack makes itself"
    other = "is the name that f has in the cloud"
    apart = "give f another key; or, if it had another name, its own formerly"
    found = told(
        buckets={
            "a": {"formerly": "staging"}, "b": {"formerly": "control"}, "c": {"formerly": "c"},
            "d": {"formerly": "x", "existing": "acme-x"}, "e": {"formerly": "f"}, "f": {},
            "g": {"formerly": "h"}, "h": {"formerly": "i"},
        },
        serviceAccounts={"a": {"formerly": "image-build"}},
        network={"allow": {"a": {"formerly": "workers", "destinationRanges": ["10.0.0.0/8"]}}},
        jobs={"a": {**FILE, "formerly": "staging"}},
        secrets={"a": {"formerly": "b"}, "c": {"formerly": "b"}},
    )  # fmt: skip
    assert found == [
        ("buckets.a.formerly", own, "staging", "remove it"),
        ("buckets.b.formerly", own, "control", "remove it"),
        ("buckets.c.formerly", "is its name still", "c", "remove it"),
        ("buckets.d.formerly", "the stack does not make what exists: its name is its owner's to "
         "change", "x", "remove it"),
        ("buckets.e.formerly", other, "f", apart),
        ("serviceAccounts.a.formerly", own, "image-build", "remove it"),
        ("secrets.a.formerly", other.replace("f has", "c has"), "b", apart.replace("f an", "c an")),
        ("secrets.c.formerly", other.replace("f has", "a has"), "b", apart.replace("f an", "a an")),
        ("network.allow.a.formerly", own, "workers", "remove it"),
    ]  # fmt: skip
