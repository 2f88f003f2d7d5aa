"""``vt iam``: which grants a resource stands for, and the whole text of each format."""

from __future__ import annotations

import json

from vertex_training_cli import iam
from vertex_training_cli.iam import DenyRule, EnvironmentIam
from vertex_training_cli.review.grants import IamBinding

DEV = EnvironmentIam(
    "dev",
    (
        IamBinding("user:a@x.org", "viewer", "bucket", "data", "x < 1"),
        IamBinding("user:bb@x.org", "owner", "project", "acme"),
        IamBinding("user:c@x.org", "viewer", "bucket", "data", "y || `z`"),
        IamBinding("user:d@x.org", "viewer", "bucket", "data", "x < 1"),
    ),
    {"zRole": ("a.b",), "aRole": ("c.d", "e.f")},
    (DenyRule("No keys", ("iam.keys.create", "iam.keys.get"), "z"), DenyRule("No more", ("x.y",))),
)
BARE = EnvironmentIam("prod", (), {}, ())


def test_a_table_numbers_conditions_and_lists_denials() -> None:
    assert iam.as_table([DEV, BARE]) == (
        "dev:\n"
        "MEMBER         ROLE    ON            CONDITION\n"
        "user:a@x.org   viewer  bucket data   [1]\n"
        "user:bb@x.org  owner   project acme\n"
        "user:c@x.org   viewer  bucket data   [2]\n"
        "user:d@x.org   viewer  bucket data   [1]\n"
        "[1] x < 1\n"
        "[2] y || `z`\n"
        "denied to all accounts of CI if z: iam.keys.create, iam.keys.get\n"
        "denied to all accounts of CI: x.y\n"
        "\n"
        "prod:\n"
        "MEMBER  ROLE  ON  CONDITION"
    )


def test_json_has_each_grant_with_its_condition() -> None:
    assert iam.as_json([DEV]) == json.dumps(
        [
            {
                "stack": "dev",
                "grants": [
                    {"member": "user:a@x.org", "role": "viewer", "on": "bucket data",
                     "condition": "x < 1"},
                    {"member": "user:bb@x.org", "role": "owner", "on": "project acme",
                     "condition": ""},
                    {"member": "user:c@x.org", "role": "viewer", "on": "bucket data",
                     "condition": "y || `z`"},
                    {"member": "user:d@x.org", "role": "viewer", "on": "bucket data",
                     "condition": "x < 1"},
                ],
                "roles": {"zRole": ["a.b"], "aRole": ["c.d", "e.f"]},
                "denials": [
                    {"title": "No keys", "permissions": ["iam.keys.create", "iam.keys.get"],
                     "condition": "z"},
                    {"title": "No more", "permissions": ["x.y"], "condition": ""},
                ],
            }
        ],
        indent=2,
    )  # fmt: skip


def test_a_page_has_three_tables_an_environment() -> None:
    page = iam.as_markdown([DEV, BARE])
    assert page.startswith("# Who can do what\n")
    _, _, sections = page.partition("\n## ")
    assert sections == (
        "dev\n\n"
        "| member | role | on | condition |\n|---|---|---|---|\n"
        "| `user:a@x.org` | `viewer` | `bucket data` | `x < 1` |\n"
        "| `user:bb@x.org` | `owner` | `project acme` |  |\n"
        "| `user:c@x.org` | `viewer` | `bucket data` | <code>y &#124;&#124; &#96;z&#96;</code> |\n"
        "| `user:d@x.org` | `viewer` | `bucket data` | `x < 1` |\n"
        "\n| custom role | permissions |\n|---|---|\n"
        "| `aRole` | c.d, e.f |\n| `zRole` | a.b |\n"
        "\n| denied to all accounts of CI | if |\n|---|---|\n"
        "| No keys: `iam.keys.create`, `iam.keys.get` | `z` |\n| No more: `x.y` |  |\n"
        "\n## prod\n\n"
        "| member | role | on | condition |\n|---|---|---|---|\n"
        "\n| custom role | permissions |\n|---|---|\n"
        "\n| denied to all accounts of CI | if |\n|---|---|\n"
    )


MEMBER = IamBinding("user:a@x.org", "storage.admin", "bucket", "x")
