"""Names that a stack gives or is given, and whom IAM members and labels belong to."""

from __future__ import annotations

import hashlib

import pytest

from vertex_training import naming
from vertex_training.naming import Names

DERIVED = Names("acme-ml-dev", "210987654321", "us-central1", "dev")


def test_numbers_of_local_projects_and_endpoints_are_the_same_on_every_machine() -> None:
    digest = int(hashlib.sha256(b"local-x").hexdigest(), 16)
    assert naming.local_project_number("local-x") == str(100_000_000_000 + digest % 900_000_000_000)
    assert naming.local_project_number("local-training") == "971240389164"
    parts = "acme-ml-dev\0us-central1\0dev\0titanic"
    digest = int(hashlib.sha256(parts.encode()).hexdigest(), 16)
    assert DERIVED.endpoint_id("titanic") == str(100_000_000 + digest % 900_000_000)
    assert (naming.is_local("local-x"), naming.is_local("x-local-")) == (True, False)


@pytest.mark.parametrize(
    ("member", "patterns", "is_of"),
    [
        ("user:kim@Example.com", ["example.COM"], True),
        ("user:kim@sub.example.com", ["example.com"], False),
        ("user:kim@sub.example.com", ["*.example.com"], True),
        ("user:kim@example.com", ["*.example.com"], False),
        ("user:kim@example.com", ["other.com", "example.com"], True),
        ("allUsers", ["*"], False),
    ],
)
def test_member_is_of_a_matching_domain(member: str, patterns: list[str], is_of: bool) -> None:
    assert naming.is_of_domains(member, patterns) is is_of


@pytest.mark.parametrize(
    ("pattern", "taken", "refused"),
    [
        (naming.KEY, ["a", "a1", "a-b"], ["", "A", "1a", "a-", "a_b", "a\n"]),
        (naming.BUCKET, ["abc", "1_a", "a" * 63], ["ab", "a" * 64, "-ab", "ab-", "a.b", "Abc"]),
        (naming.ACCOUNT_ID, ["trainr", "a" * 30], ["train", "a" * 31, "1rainer", "trainer-"]),
        (naming.COMPUTE, ["a", "a" * 63, "a-1"], ["", "a" * 64, "1a", "a-", "A"]),
        (naming.MODEL_ID, ["_", "a" * 63, "a-"], ["", "a" * 64, "1a", "A"]),
        (naming.BUCKET_GOOGLE, ["goog-x", "my-google", "g00gle"], ["my-goog", "gogle"]),
    ],
)
def test_a_name_is_one_that_its_service_takes(
    pattern: object, taken: list[str], refused: list[str]
) -> None:
    match = pattern.match  # pyright: ignore[reportAttributeAccessIssue]
    assert [name for name in taken if not match(name)] == []
    assert [name for name in refused if match(name)] == []
