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
        ("stack", ""),
        ("stack", "-dev"),
        ("stack", "d" * 101),
        ("commit", "c" * 41),
        ("tree", "A" * 40),
        ("commit", "c" * 39),
        ("tree", "HEAD"),
        ("report", "f" * 63),
        ("report", "F" * 64),
        ("report", "f" * 64 + "\n"),
        ("schema_version", 1),
        ("target", {}),
        ("target", {"backend": ""}),
        ("target", {"backend": "gs://a\nb"}),
        ("target", {"backend": "gs://a\x7f"}),
        ("target", {"backend": "g" * 1001}),
        ("target", {"backend": "gs://a", "redirects": {str(n): "" for n in range(101)}}),
        ("target", {"backend": "gs://a", "sudo": "yes"}),
        ("target", {"backend": "gs://a", "settings": {str(n): "" for n in range(101)}}),
        ("approved_by", "somebody"),
    ],
)
def test_what_is_no_record_is_refused_by_the_field_that_is_wrong(key, value):
    with pytest.raises(ApprovalParseError, match=key):
        parse_approval(json.dumps(FIELDS | {key: value}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("stack", "a"),
        ("stack", "0.a_B-9" + "x" * 93),  # a hundred characters
        ("commit", "0123456789abcdef" * 4),  # of a repository with SHA-256
        ("tree", "0123456789abcdef" * 4),
        ("schema_version", 2),
        ("target", {"backend": "gs://a", "settings": {str(n): "" for n in range(100)}}),
        ("target", {"backend": "g" * 1000}),
    ],
)
def test_the_longest_of_each_field_is_a_record(key, value):
    record = parse_approval(f" {json.dumps(FIELDS | {key: value})}\n")
    assert json.loads(record.as_json())[key] == (
        value if key != "target" else Target(**value).model_dump()
    )


def test_a_record_has_all_its_fields_by_name():
    assert json.loads(make_approval(FIELDS).as_json()) == {
        "schema_version": 2,
        "stack": "dev",
        "commit": "c" * 40,
        "tree": "a" * 40,
        "report": "f" * 64,
        "target": {
            "backend": "gs://acme-state", "secrets_provider": "", "deploy_account": "",
            "identity_provider": "", "settings": {}, "redirects": {},
        },
    }  # fmt: skip


def test_every_mistake_is_told_with_its_place():
    wrong = FIELDS | {"tree": "HEAD", "target": {"backend": "gs://a", "settings": {"a": 1}}}
    with pytest.raises(ApprovalParseError) as refused:
        make_approval(wrong)
    tree, setting = str(refused.value).split("; ")
    assert tree.startswith("tree: String should match pattern")
    assert setting == "target.settings.a: Input should be a valid string"


def test_a_text_that_is_no_object_has_no_place_to_name():
    with pytest.raises(ApprovalParseError, match=r"\A(Invalid JSON|Input should be)"):
        parse_approval("[]")


@pytest.mark.parametrize("key", FIELDS)
def test_no_field_may_be_missing(key):
    with pytest.raises(ApprovalParseError, match=f"{key}: Field required"):
        make_approval({name: value for name, value in FIELDS.items() if name != key})


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "yes"])
def test_other_texts_are_no_records(text):
    with pytest.raises(ApprovalParseError):
        parse_approval(text)
