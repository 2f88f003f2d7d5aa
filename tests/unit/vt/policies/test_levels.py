"""Levels of policies: the stack file's, then those of a file; given to every pack."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.unit.vt.review import plans
from vertex_training.errors import CommandError, Problem
from vertex_training_cli import policy_levels

STACK = """\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
  vertex-training:policyLevels: {job-in-a-network: disabled, registry-cleanup: advisory}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    return tmp_path


def written(root: Path, content: object) -> Path:
    file = root / "levels.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


FORM = ' Hint: write {"POLICY": {"enforcementLevel": "advisory"}}, see docs/review.md'
NO_LEVEL = "p has an unknown level. Choose one of advisory, mandatory, remediate, disabled."


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", f"the content is not valid JSON.{FORM}"),
        ("[" * 100_000, f"the content is not valid JSON.{FORM}"),
        ("[]", f"the content is not a JSON object.{FORM}"),
        ({"p": "loud"}, f"{NO_LEVEL}{FORM}"),
        ({"p": 3}, f"{NO_LEVEL}{FORM}"),
        (None, "No such file or directory."),
    ],
)
def test_a_file_of_another_form_is_refused_with_its_name(
    root: Path, content: object, said: str
) -> None:
    file = root / "none.json" if content is None else written(root, content)
    with pytest.raises(CommandError) as refused:
        policy_levels.policy_config(root, "dev", file)
    assert str(refused.value) == f"--policy-levels {file}: {said}"


@pytest.mark.parametrize("level", ["advisory", "mandatory", "remediate", "disabled"])
def test_a_level_alone_stands_for_its_setting(root: Path, level: str) -> None:
    found = policy_levels.policy_config(root, "dev", written(root, {"p": level}))
    assert found["p"] == {"enforcementLevel": level}


def test_domains_of_the_stack_file_are_settings_of_their_policy(root: Path) -> None:
    file = root / "Pulumi.dev.yaml"
    file.write_text(
        STACK.replace("registry-cleanup: advisory", "other: loud")
        + "  vertex-training:limits: {memberDomains: [example.com]}\n"
    )
    found = policy_levels.policy_config(root, "dev", None)
    domains = found.pop("members-of-own-domains")["domains"]
    assert "example.com" in domains
    assert found == {"job-in-a-network": {"enforcementLevel": "disabled"}}
    file.write_text("config: [")
    assert policy_levels.policy_config(root, "dev", None) == {}


def test_level_of_a_misspelled_policy_is_a_mistake_of_the_stack_file() -> None:
    assert policy_levels.problems(
        {"job-in-a-network": "disabled", "job-in-a-netwrk": "disabled", "ours-alone": "advisory"}
    ) == [
        Problem(
            "unknown policy", "job-in-a-netwrk", "did you mean 'job-in-a-network'?",
            ("policyLevels", "job-in-a-netwrk"),
        )
    ]  # fmt: skip


def test_the_engine_gets_a_config_for_each_pack(root: Path) -> None:
    config = policy_levels.policy_config(root, "dev", None)
    file = root / "policies.json"
    assert policy_levels.options(["a", "/b"], config, root) == [
        "--policy-pack", str(Path.cwd() / "a"), "--policy-pack", "/b",
        *["--policy-pack-config", str(file)] * 2,
    ]  # fmt: skip
    assert file.read_text() == (
        '{\n  "job-in-a-network": {\n    "enforcementLevel": "disabled"\n  },\n'
        '  "registry-cleanup": {\n    "enforcementLevel": "advisory"\n  }\n}\n'
    )


@pytest.mark.parametrize("arguments", [["--policy-pack", "policy"], ["--policy-pack=policy"]])
def test_an_up_with_a_pack_has_the_levels_of_the_stack_file(
    root: Path, arguments: list[str]
) -> None:
    file = root / ".build" / "policies" / "dev.json"
    given = ["--policy-pack-config", str(file)]
    assert policy_levels.up_options(root, "dev", arguments, None) == given
    assert policy_levels.up_options(root, "dev", arguments * 2, None) == given * 2
    assert json.loads(file.read_text()) == policy_levels.policy_config(root, "dev", None)
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_levels_without_a_pack_are_a_mistake(root: Path) -> None:
    with pytest.raises(CommandError) as refused:
        policy_levels.up_options(root, "dev", [], written(root, {}))
    assert str(refused.value) == (
        "--policy-levels requires --policy-pack. Hint: add the option --policy-pack"
    )


def test_review_refuses_a_level_of_an_unknown_policy() -> None:
    plan = plans.plan(plans.violation("p", "advisory", "m"))
    given = {name: {"enforcementLevel": "advisory"} for name in ("typo", "p")}
    given |= {"off": {"enforcementLevel": "disabled"}, "bare": {"maxHours": 24}}
    levels, problems = policy_levels.with_levels(plan, given)
    assert levels == dataclasses.replace(plan, levels={"off": "disabled", "p": "advisory"})
    assert [problem.message for problem in problems] == [
        "policyLevels.typo: unknown policy (got typo). Hint: remove the entry, or add "
        "--policy-pack with the policy's pack"
    ]


def test_forbidden_plan_also_names_unknown_policies() -> None:
    plan = dataclasses.replace(plans.plan(plans.violation("p", "mandatory", "m")), succeeded=False)
    _, [problem] = policy_levels.with_levels(plan, {"typo": {"enforcementLevel": "advisory"}})
    assert problem.value == "typo"


def test_no_policy_is_unknown_without_a_finished_preview() -> None:
    given = {"p": {"enforcementLevel": "advisory"}}
    plan = plans.plan(plans.violation("q", "advisory", "m"))
    failed = dataclasses.replace(plan, succeeded=False)
    for plan in (plans.plan(), failed):
        levels, problems = policy_levels.with_levels(plan, given)
        assert levels.levels == {"p": "advisory"}
        assert not problems
