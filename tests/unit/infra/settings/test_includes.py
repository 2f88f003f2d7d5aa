"""Stack files that share a file: one config of all of them, each mistake at its own place."""

from __future__ import annotations

from pathlib import Path

import pulumi
import pytest

from vertex_training import engine, stack
from vertex_training.errors import ConfigError, Problem
from vertex_training.foundation import config as foundation
from vertex_training.settings import includes, stack_files

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


def test_a_stack_has_the_entries_of_its_file_and_of_the_included_one(tmp_path: Path) -> None:
    settings = stack.load(write(tmp_path), "dev").settings
    assert set(settings.buckets) == {"corpus", "data"}
    assert settings.buckets["data"].keep_noncurrent_days == 7
    assert settings.submitters == ["group:ml@example.com"]
    assert settings.include == ["stacks/shared.yaml"]


def test_two_stacks_share_a_file_and_have_names_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, name="europe")
    found = [stack.load(write(tmp_path), name).settings for name in ("dev", "europe")]
    assert [each.names.bucket("data") for each in found] == [
        "acme-ml-dev-data-dev",
        "acme-ml-dev-data-europe",
    ]


def test_a_default_of_the_project_gives_way_to_an_included_value(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text(
        "name: vertex-training\nruntime: python\nconfig:\n"
        "  vertex-training:submitters: {type: array, items: {type: string}, default: []}\n"
        "  vertex-training:onChange: {type: string, default: cancel}\n"
    )
    (tmp_path / "stacks/shared.yaml").write_text(SHARED + "  vertex-training:onChange: finish\n")
    settings = stack.load(tmp_path, "dev").settings
    assert settings.submitters == ["group:ml@example.com"]
    assert settings.on_change == "finish"


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


def test_of_two_included_files_neither_overrides_the_other(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "stacks/more.yaml").write_text(
        "config:\n  vertex-training:buckets:\n    data: {}\n  vertex-training:limits: {}\n"
    )
    stack_file = tmp_path / "Pulumi.dev.yaml"
    stack_file.write_text(
        stack_file.read_text().replace("shared.yaml", "shared.yaml, stacks/more.yaml")
    )
    assert told(tmp_path) == [
        "stacks/more.yaml:3:5: vertex-training:buckets.data: stands in stacks/shared.yaml, too. "
        "Hint: keep one of them"
    ]


def test_mistakes_of_all_files_are_told_at_once_each_at_its_place(tmp_path: Path) -> None:
    shared = SHARED.replace("Days: 7", "Days: 0") + "  vertex-training:bukets: {}\n"
    own = OWN.replace("existing: acme-corpus", "existing: Acme") + "  vertex-training:jobz: {}\n"
    places = [(str(each.location), each.what) for each in mistakes(write(tmp_path, own, shared))]
    assert sorted(places) == [
        ("Pulumi.dev.yaml:6:38", "must look like acme-datasets: 3 to 63 lowercase letters, digits, "
         "'-' and '_'"),
        ("Pulumi.dev.yaml:7:3", "unknown key"),
        ("stacks/shared.yaml:3:12", "input should be greater than or equal to 1"),
        ("stacks/shared.yaml:7:3", "unknown key"),
    ]  # fmt: skip


def test_a_rule_across_files_reports_the_line_of_the_included_one(tmp_path: Path) -> None:
    [only] = told(write(tmp_path, ""))
    assert only.startswith("stacks/shared.yaml:5:29: vertex-training:serviceAccounts.trainer.reads")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../shared.yaml", "must look like"),
        ("/etc/shared.yaml", "must look like"),
        ("stacks/../../shared.yaml", "must look like"),
        ("stacks/shared.txt", "must look like"),
        ("C:\\\\shared.yaml", "must look like"),
        ("stacks/missing.yaml", "cannot be read: No such file"),
        ("stacks", "must look like"),
        ("stacks/folder.yaml", "cannot be read: Is a directory"),
        ("stacks/link.yaml", "is a link"),
        ("linked/shared.yaml", "is a link"),
        ("Pulumi.dev.yaml", "is the file of a project or a stack"),
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


def test_the_engine_reads_the_same_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine passes on the stack's own file, and defaults for what it does not give."""
    write(tmp_path)
    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
    pulumi.runtime.set_all_config(
        {
            "gcp:project": "acme-ml-dev",
            "gcp:region": "us-central1",
            "vertex-training:projectNumber": "210987654321",
            "vertex-training:include": '["stacks/shared.yaml"]',
            "vertex-training:buckets": '{"corpus": {"existing": "acme-corpus"}}',
            "vertex-training:submitters": "[]",
            "vertex-training:secrets": "{}",
        }
    )
    try:
        read = engine.read_config(stack.SCHEMA, tmp_path)
        assert stack.read_settings(read, tmp_path) == stack.load(tmp_path, "dev").settings
        (tmp_path / "stacks/shared.yaml").write_text(SHARED + "  vertex-training:bukets: {}\n")
        with pytest.raises(ConfigError, match=r"^stacks/shared.yaml:7:3: .*bukets: unknown key"):
            stack.read_settings(engine.read_config(stack.SCHEMA, tmp_path), tmp_path)
    finally:
        pulumi.runtime.set_all_config({})


def test_a_review_has_limits_teams_and_levels_of_included_files(tmp_path: Path) -> None:
    limits = "  vertex-training:limits: {maxUsdPerJob: 5}\n"
    raw = stack_files.read_raw(stack.SCHEMA, write(tmp_path, shared=SHARED + limits), "dev")
    shown = stack_files.shown_config(raw, stack.SCHEMA)
    assert shown["vertex-training:limits"] == '{"maxUsdPerJob": 5}'
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK.replace("[stacks/shared.yaml]", "[]"))
    raw = stack_files.read_raw(stack.SCHEMA, tmp_path, "dev")
    assert stack_files.shown_config(raw, stack.SCHEMA) == {}


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
        ('vertex-training:projectNumber: "210987654321"', "it stands beside gcp:project"),
        ("gcp:project: acme-other", "the engine reads it from the stack file"),
        ("gcp:region: us-east1", "the engine reads it from the stack file"),
        ("pulumi:disable-default-providers: [gcp]", "the engine reads it from the stack file"),
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


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"config:\n   - a\n  b: 1\n", ":3:3"),
        (b"config: &a [*b]", ":1:13"),
        (b"\xff\xfe\xff", ":1:1"),
        (b"a: b\nc: \x01", ":1:1"),
    ],
)
def test_what_is_no_yaml_is_told_in_one_line_where_it_is_not(
    tmp_path: Path, content: bytes, place: str
) -> None:
    (tmp_path / "x.yaml").write_bytes(content)
    for shown, name in (("stacks/x.yaml", "stacks/x.yaml"), ("", "x.yaml")):
        with pytest.raises(ConfigError) as failed:
            includes.read_config(tmp_path / "x.yaml", shown)
        [problem] = failed.value.problems
        assert str(problem.location) == f"{name}{place}"
        assert problem.what.startswith("not YAML: ")
        assert "\n" not in problem.what


@pytest.mark.parametrize(
    ("content", "config"),
    [
        ("", {}),
        ("- a", {}),
        ("config:\n", {}),
        ("config: {1: 2, a: {3: 4}}", {"1": 2, "a": {3: 4}}),
    ],
)
def test_a_config_is_by_key(tmp_path: Path, content: str, config: dict[str, object]) -> None:
    (tmp_path / "x.yaml").write_text(content)
    assert includes.read_config(tmp_path / "x.yaml") == config


def test_a_file_that_grows_without_bound_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    [found] = mistakes(write(tmp_path, shared="\n".join(lines)))
    assert found.location.file == "stacks/shared.yaml"


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


def test_a_stack_has_exceptions_from_what_it_includes(tmp_path: Path) -> None:
    root = overriding(
        tmp_path,
        "buckets.data.protect: false",
        "buckets.data.softDeleteDays: null",
        "buckets.scratch.keepNoncurrentDays: 3",
        "limits.maxUsdPerJob: 50",
        "labels.cost-center: b2",
        "serviceAccounts.trainer: {writes: [scratch]}",
    )
    settings = stack.load(root, "dev").settings
    assert settings.buckets["data"].protect is False
    assert settings.buckets["data"].soft_delete_days == 7
    assert settings.buckets["scratch"].keep_noncurrent_days == 3
    assert settings.limits.max_usd_per_job == 50
    assert settings.labels == {"team": "vision", "cost-center": "b2"}
    assert settings.service_accounts["trainer"].reads == []


def test_a_stack_leaves_out_what_it_includes(tmp_path: Path) -> None:
    root = overriding(
        tmp_path, "buckets.data: null", "serviceAccounts.trainer.reads: []", "limits: null"
    )
    settings = stack.load(root, "dev").settings
    assert set(settings.buckets) == {"scratch"}
    assert settings.limits.max_usd_per_job is None


def test_another_stack_of_the_same_file_has_no_exceptions(tmp_path: Path) -> None:
    overriding(tmp_path, "buckets.data.protect: false")
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    assert stack.load(tmp_path, "prod").settings.buckets["data"].protect is True


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("buckets.dta.protect: false", "no included file has buckets.dta. Hint: did you mean "
         "'buckets.data'?"),
        ("network.mode: none", "no included file has network. Hint: known here: buckets.data, "
         "buckets.scratch, labels.cost-center, labels.team, limits, serviceAccounts.trainer"),
        ("buckets.corpus.protect: true", "stands in this file. Hint: change it there"),
        ("buckets: {}", "is a mapping of names. Hint: override one of them, like buckets.data"),
        ("buckets.data.protect.really: 1", "buckets.data.protect is no mapping"),
        ("buckets.data.versioning: null", "there is nothing to leave out"),
        ("images.a: null", "no included file has images. Hint"),
        ("\"\": 1", "no included file has"),
        ("buckets..protect: 1", "no included file has"),
    ],
)  # fmt: skip
def test_an_exception_from_nothing_is_a_mistake_at_its_line(
    tmp_path: Path, line: str, message: str
) -> None:
    found = [each for each in told(overriding(tmp_path, line, own=OWN)) if "overrides" in each]
    assert len(found) == 1
    assert found[0].startswith("Pulumi.dev.yaml:8:5: vertex-training:overrides.")
    assert message in found[0]


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


def test_keys_are_text_at_any_depth() -> None:
    given = {1: [{2: {True: None}}, [3]], "a": {None: 4}}
    assert includes.with_text_keys(given) == {"1": [{"2": {"True": None}}, [3]], "a": {"None": 4}}
