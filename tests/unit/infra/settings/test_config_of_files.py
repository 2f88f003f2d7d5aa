"""The whole config that a stack's files give, as the engine gives it, and what they do wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import ConfigError, Location, Problem
from vertex_training.settings import stack_files
from vertex_training.stack import SCHEMA

PROJECT = """\
name: acme
runtime: python
config:
  vertex-training:labels: {type: object, default: {team: ml}}
  vertex-training:projectNumber: {type: string}
  gcp:region: {value: us-central1}
  topic: {default: events}
  other: x
"""
STACK = """\
config:
  gcp:project: acme-ml-dev
  gcp:zone: 3
  gcp:skipRegionValidation: true
  vertex-training:projectNumber: 210987654321
  vertex-training:tensorboard: 7.5
  vertex-training:onChange: 1.5
  vertex-training:buckets:
    2024: [{1: 2}]
  pulumi:tags: {owner: ml}
  own: 1
"""
KNOWN = "known here: config, encryptedkey, encryptionsalt, environment, secretsprovider"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text(PROJECT)
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    return tmp_path


def test_the_stacks_file_wins_over_the_projects_whole_values_at_a_time(root: Path) -> None:
    found = stack_files.read_raw(SCHEMA, root, "dev")
    assert (found, found.problems) == (
        {
            "project": "acme-ml-dev",
            "region": "us-central1",
            "labels": {"team": "ml"},
            "projectNumber": "210987654321",
            "tensorboard": "7.5",
            "onChange": 1.5,
            "buckets": {"2024": [{"1": 2}]},
            "stack": "dev",
        },
        (),
    )
    more = STACK + "  vertex-training:labels: {}\n  gcp:region: us-east1\n"
    (root / "Pulumi.dev.yaml").write_text(more)
    found = stack_files.read_raw(SCHEMA, root, "dev")
    assert (found["labels"], found["region"]) == ({}, "us-east1")


def test_a_program_gets_all_of_it_as_text(root: Path) -> None:
    assert stack_files.engine_config("acme", root, "dev", "[hidden]") == (
        {
            "vertex-training:labels": '{"team": "ml"}',
            "gcp:region": "us-central1",
            "acme:topic": "events",
            "gcp:project": "acme-ml-dev",
            "gcp:zone": "3",
            "gcp:skipRegionValidation": "true",
            "vertex-training:projectNumber": "210987654321",
            "vertex-training:tensorboard": "7.5",
            "vertex-training:onChange": "1.5",
            "vertex-training:buckets": '{"2024": [{"1": 2}]}',
            "pulumi:tags": '{"owner": "ml"}',
            "acme:own": "1",
        },
        [],
    )


def test_keys_of_the_file_alone_are_those_that_the_stack_gives(root: Path) -> None:
    assert stack_files.given_keys(SCHEMA, root, "dev") == {
        "gcp:project", "gcp:zone", "gcp:skipRegionValidation", "vertex-training:projectNumber",
        "vertex-training:tensorboard", "vertex-training:onChange", "vertex-training:buckets",
        "pulumi:tags", "acme:own",
    }  # fmt: skip
    assert stack_files.given_keys(SCHEMA, root, "none") == set()
    (root / "Pulumi.dev.yaml").write_text("[\n")
    assert stack_files.given_keys(SCHEMA, root, "dev") == set()
    (root / "Pulumi.yaml").unlink()
    (root / "Pulumi.dev.yaml").write_text("config: {buckets: {}}\n")
    assert stack_files.given_keys(SCHEMA, root, "dev") == {"vertex-training:buckets"}


def test_encrypted_values_are_told_at_their_lines_and_hidden_from_a_program(root: Path) -> None:
    (root / "Pulumi.dev.yaml").write_text(
        "config:\n  gcp:project: {secure: AAAB}\n  token: {secure: AAAC}\n"
        "  vertex-training:labels: {a: [{secure: AAAD}], b: plain}\n"
    )
    with pytest.raises(ConfigError) as failed:
        stack_files.read_raw(SCHEMA, root, "dev")
    what = "is encrypted, and everything here goes into names, requests and the state in clear"
    assert list(failed.value.problems) == [
        Problem(
            what,
            hint=f"pulumi config rm {key}; secrets belong in Secret Manager",
            path=(key,),
            location=Location("Pulumi.dev.yaml", line, 3),
        )
        for key, line in (("vertex-training:labels", 4), ("gcp:project", 2))
    ]
    assert stack_files.engine_config("acme", root, "dev", "[hidden]") == (
        {
            "vertex-training:labels": "[hidden]",
            "gcp:region": "us-central1",
            "acme:topic": "events",
            "gcp:project": "[hidden]",
            "acme:token": "[hidden]",
        },
        ["vertex-training:labels", "gcp:project", "acme:token"],
    )


def test_what_is_included_is_shown_and_nothing_where_the_file_has_all(root: Path) -> None:
    assert stack_files.shown_config(stack_files.read_raw(SCHEMA, root, "dev"), SCHEMA) == {}
    (root / "shared.yaml").write_text(
        "config:\n  vertex-training:limits: {maxUsdPerJob: 1, allowUnpriced: true}\n"
        "  vertex-training:onChange: cancel\n"
    )
    (root / "Pulumi.dev.yaml").write_text("config:\n  vertex-training:include: [shared.yaml]\n")
    found = stack_files.read_raw(SCHEMA, root, "dev")
    assert stack_files.shown_config(found, SCHEMA) == {
        "vertex-training:include": '["shared.yaml"]',
        "vertex-training:labels": '{"team": "ml"}',
        "vertex-training:limits": '{"allowUnpriced": true, "maxUsdPerJob": 1}',
    }


def place(line: int, column: int = 1) -> Location:
    return Location("Pulumi.dev.yaml", line, column)


def unknown(key: str, line: int, hint: str = KNOWN) -> Problem:
    return Problem("unknown key", hint=hint, path=(key,), location=place(line))


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", []),
        ("- a\n", []),
        ("secretsprovider: x\nencryptedkey: y\nencryptionsalt: z\nenvironment: [e]\n", []),
        ("a: b\n", [unknown("a", 1)]),
        ("config: {}\nvertex-training:jobs: {}\n", [unknown("vertex-training:jobs", 2)]),
        (
            "config:\n  gcp:project: a\n  gcp:project: b\nsecretprovider: x\nzzz: 1\n",
            [
                Problem(
                    "the same key twice",
                    "gcp:project",
                    "the other stands in line 2; YAML would silently keep one of them",
                    location=place(3, 3),
                ),
                unknown("secretprovider", 4, "did you mean 'secretsprovider'?"),
                unknown("zzz", 5),
            ],
        ),
    ],
)
def test_what_a_file_has_beside_its_config_is_told(
    root: Path, text: str, problems: list[Problem]
) -> None:
    (root / "Pulumi.dev.yaml").write_text(text)
    assert list(stack_files.read_raw(SCHEMA, root, "dev").problems) == problems
    assert stack_files.file_problems(root / "Pulumi.dev.yaml") == problems
    assert stack_files.file_problems(root / "Pulumi.none.yaml") == []


def test_what_no_parser_takes_is_told_once_where_values_are_read(root: Path) -> None:
    file = root / "Pulumi.dev.yaml"
    file.write_text("config: {}\n? [x]\n: y\n")
    assert stack_files.file_problems(file) == []
    with pytest.raises(ConfigError) as failed:
        stack_files.read_raw(SCHEMA, root, "dev")
    assert failed.value.problems == (
        Problem("not YAML: found unhashable key", location=place(2, 3)),
    )


@pytest.mark.parametrize(
    ("text", "keys", "first"),
    [
        ("gcp:project: x\n", 1, ("gcp:project", 1)),
        ("environment: [e]\nvertex-training:buckets: {}\ngcp:project: x\n", 2,
         ("vertex-training:buckets", 2)),
    ],
)  # fmt: skip
def test_a_config_without_its_first_line_is_told_with_what_to_write(
    root: Path, text: str, keys: int, first: tuple[Any, ...]
) -> None:
    (root / "Pulumi.dev.yaml").write_text(text)
    with pytest.raises(ConfigError) as failed:
        stack_files.read_raw(SCHEMA, root, "dev")
    assert list(failed.value.problems) == [
        Problem(
            f"stands at the top of the file, as {keys} keys do, and nothing reads it there",
            hint="write a line 'config:' before the first, and indent them by two spaces",
            path=(first[0],),
            location=place(first[1]),
        )
    ]
