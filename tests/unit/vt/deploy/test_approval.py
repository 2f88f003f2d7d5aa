"""The record of an approval: what is one, and how it travels."""

import json

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertex_training.errors import ApprovalParseError
from vertex_training_cli.deploy.approval import (
    Approval,
    make_approval,
    parse_approval,
)
from vertex_training_cli.deploy.target import Target

TARGET = {"backend": "gs://acme-state"}
FIELDS = {
    "stack": "dev", "commit": "c" * 40, "tree": "a" * 40, "report": "f" * 64, "target": TARGET
}  # fmt: skip
hexadecimal = st.text("0123456789abcdef", min_size=40, max_size=40)


@given(
    commit=hexadecimal,
    tree=hexadecimal,
    report=st.text("0123456789abcdef", min_size=64, max_size=64),
)
def test_a_record_survives_its_way(commit, tree, report):
    target = Target(backend="gs://acme-state/--> <!-- {}")
    record = Approval(stack="dev", commit=commit, tree=tree, report=report, target=target)
    assert parse_approval(record.as_json()) == record


def test_a_record_is_one_line():
    assert "\n" not in make_approval(FIELDS).as_json()


def test_a_record_that_was_checked_cannot_be_changed_afterwards():
    record = make_approval(FIELDS)
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        record.stack = "prod"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("stack", "dev prod"),
        ("stack", "--> <script>"),
        ("commit", "c" * 39),
        ("tree", "HEAD"),
        ("report", "f" * 63),
        ("report", "F" * 64),
        ("report", "f" * 64 + "\n"),
        ("schema_version", 1),
        ("target", {}),
        ("target", {"backend": ""}),
        ("target", {"backend": "gs://a\nb"}),
        ("target", {"backend": "gs://a", "sudo": "yes"}),
        ("target", {"backend": "gs://a", "settings": {str(n): "" for n in range(101)}}),
        ("approved_by", "somebody"),
    ],
)
def test_what_is_no_record_is_refused_by_the_field_that_is_wrong(key, value):
    with pytest.raises(ApprovalParseError, match=key):
        parse_approval(json.dumps(FIELDS | {key: value}))


@pytest.mark.parametrize("key", FIELDS)
def test_no_field_may_be_missing(key):
    with pytest.raises(ApprovalParseError, match=f"{key}: Field required"):
        make_approval({name: value for name, value in FIELDS.items() if name != key})


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "yes"])
def test_other_texts_are_no_records(text):
    with pytest.raises(ApprovalParseError):
        parse_approval(text)
