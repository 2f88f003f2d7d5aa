"""Stack files that share a file: one config of all of them, each mistake at its own place."""

from __future__ import annotations

from pathlib import Path

import pytest

from vertex_training import stack
from vertex_training.errors import ConfigError, Problem
from vertex_training.foundation import config as foundation
from vertex_training.settings import includes

STACK = """\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
  vertex-training:include: [stacks/shared.yaml]
"""
SHARED = """\
config:
  vertex-training:buckets:
    data: {keepNoncurrentDays: 7}
  vertex-training:serviceAccounts:
    trainer: {reads: [data, corpus]}
  vertex-training:submitters: ["group:ml@example.com"]
"""
OWN = "  vertex-training:buckets: {corpus: {existing: acme-corpus}}\n"


def write(root: Path, own: str = OWN, shared: str = SHARED, name: str = "dev") -> Path:
    (root / "stacks").mkdir(exist_ok=True)
    (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (root / f"Pulumi.{name}.yaml").write_text(STACK + own)
    (root / "stacks/shared.yaml").write_text(shared)
    return root


def mistakes(root: Path) -> list[Problem]:
    with pytest.raises(ConfigError) as failed:
        stack.load(root, "dev")
    return list(failed.value.problems)


def told(root: Path) -> list[str]:
    return [str(problem) for problem in mistakes(root)]


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            "  vertex-training:buckets: {data: {}, corpus: {}}\n",
            "stacks/shared.yaml:3:5: vertex-training:buckets.data: stands in Pulumi.dev.yaml, too. "
            "Hint: keep one of them",
        ),
        (
            OWN + "  vertex-training:submitters: []\n",
            "stacks/shared.yaml:6:3: vertex-training:submitters: stands in Pulumi.dev.yaml, too, "
            "and is no mapping of names. Hint: keep one of them",
        ),
    ],
)
def test_nothing_overrides_anything(tmp_path: Path, own: str, message: str) -> None:
    assert told(write(tmp_path, own)) == [message]


def test_a_section_that_is_no_mapping_is_not_lost_for_an_included_one(tmp_path: Path) -> None:
    assert told(write(tmp_path, "  vertex-training:buckets: corpus\n")) == [
        "Pulumi.dev.yaml:6:3: vertex-training:buckets: must be a mapping, like {name: value} "
        '(got "corpus").'
    ]


def test_a_rule_across_files_reports_the_line_of_the_included_one(tmp_path: Path) -> None:
    [only] = told(write(tmp_path, ""))
    assert only.startswith("stacks/shared.yaml:5:29: vertex-training:serviceAccounts.trainer.reads")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../shared.yaml", "must look like"),
        ("/etc/shared.yaml", "must look like"),
        ("stacks/../../shared.yaml", "must look like"),
        ("stacks/missing.yaml", "cannot be read: No such file"),
        ("stacks/link.yaml", "is a link"),
        ("Pulumi.yaml", "is the file of a project or a stack"),
    ],
)
def test_only_files_of_the_checkout_are_included(tmp_path: Path, path: str, message: str) -> None:
    write(tmp_path, OWN.replace("corpus: {existing: acme-corpus}", "data: {}"))
    (tmp_path / "stacks/link.yaml").symlink_to("shared.yaml")
    (tmp_path / "stacks/folder.yaml").mkdir()
    (tmp_path / "linked").symlink_to("stacks")
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(file.read_text().replace("[stacks/shared.yaml]", f'["{path}"]'))
    [found] = mistakes(tmp_path)
    assert message in str(found)
    assert str(found.location).startswith("Pulumi.dev.yaml:5:")


def test_a_file_is_included_once(tmp_path: Path) -> None:
    file = write(tmp_path) / "Pulumi.dev.yaml"
    file.write_text(file.read_text().replace("shared.yaml]", "shared.yaml, stacks/shared.yaml]"))
    [found] = mistakes(tmp_path)
    assert (found.what, found.location.line) == ("is included twice", 5)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("vertex-training:include: [stacks/shared.yaml]", "an included file includes nothing"),
        ("vertex-training:images: {x: {context: jobs/x}}", "each stack pins digests of its own"),
        ("gcp:project: acme-other", "the engine reads it from the stack file"),
        ("buckets: {x: {}}", "has no namespace"),
        ("other:buckets: {x: {}}", "wrong namespace"),
        ("vertex-training:stack: prod", "unknown key"),
    ],
)
def test_what_is_of_one_stack_is_refused_in_an_included_file(
    tmp_path: Path, line: str, message: str
) -> None:
    [found] = told(write(tmp_path, shared=f"{SHARED}  {line}\n"))
    assert message in found
    assert found.startswith("stacks/shared.yaml:7:3: ")


def test_an_encrypted_value_is_refused_and_no_other_value_is_shown(tmp_path: Path) -> None:
    secret = SHARED + "  vertex-training:labels: {token: {secure: AAABAcipher}}\n"
    [found] = told(write(tmp_path, "  vertex-training:bukets: hunter2\n", secret))
    assert found.startswith("stacks/shared.yaml:7:3: vertex-training:labels: is encrypted")
    assert "cipher" not in found


def test_a_file_that_is_no_config_is_told_at_its_line(tmp_path: Path) -> None:
    assert told(write(tmp_path, shared="config: [\n"))[0].startswith("stacks/shared.yaml:2:1: ")
    found = told(write(tmp_path, shared="config: [buckets]\n"))
    assert found[0] == "stacks/shared.yaml:1:1: config must be a mapping."
    twice = SHARED + "  vertex-training:labels: {a: b}\n  vertex-training:labels: {a: c}\n"
    assert any(":8:3: " in each for each in told(write(tmp_path, shared=twice)))
    top = told(write(tmp_path, shared=SHARED + "secretsprovider: x\n"))
    assert top[0].startswith("stacks/shared.yaml:7:1: secretsprovider: an included file has config")


TEAMS = """\
config:
  vertex-training:buckets:
    data: {protect: true, softDeleteDays: 30}
    scratch: {}
  vertex-training:serviceAccounts:
    trainer: {reads: [data], writes: [scratch]}
  vertex-training:limits: {maxUsdPerJob: 500}
  vertex-training:labels: {team: vision, cost-center: a1}
"""


def overriding(root: Path, *lines: str, own: str = "") -> Path:
    """A stack with these overrides of the file that it includes."""
    text = "".join(f"    {line}\n" for line in lines)
    return write(root, f"{own}  vertex-training:overrides:\n{text}", TEAMS)


def test_an_exception_inside_of_another_one_is_a_mistake(tmp_path: Path) -> None:
    root = overriding(tmp_path, "buckets.data: {protect: true}", "buckets.data.protect: false")
    [found] = told(root)
    assert found.startswith(
        "Pulumi.dev.yaml:8:5: vertex-training:overrides.buckets.data.protect: is"
    )
    assert "is a part of buckets.data, which is overridden as a whole" in found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("buckets.data.softDeleteDays: 3", "7:5: vertex-training:buckets.data.softDeleteDays: "
         "must be 0 (off) or 7 to 90 days (got 3)"),
        ("buckets.data.protct: false", "7:5: vertex-training:buckets.data.protct: unknown key. "
         "Hint: did you mean 'protect'?"),
        ("serviceAccounts.trainer: {reads: [dta]}", "7:39: vertex-training:serviceAccounts."
         "trainer.reads[0]: this stack has no such bucket"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_where_it_stands(tmp_path: Path, line: str, message: str) -> None:
    [found] = told(overriding(tmp_path, line))
    assert found.startswith(f"Pulumi.dev.yaml:{message}")


def test_an_included_file_has_no_exceptions(tmp_path: Path) -> None:
    shared = TEAMS + "  vertex-training:overrides: {limits.maxUsdPerJob: 1}\n"
    [found] = told(write(tmp_path, "", shared))
    assert found.startswith("stacks/shared.yaml:9:3: vertex-training:overrides: is of one stack")


def test_an_environment_of_bootstrap_includes_nothing(tmp_path: Path) -> None:
    values = {"vertex-training-bootstrap:include": ["shared.yaml"], "gcp:project": "acme-ml-prod"}
    found = includes.merge(foundation.SCHEMA, "prod", tmp_path, values, values)
    assert (found, found.problems) == (values, ())
