"""Levels of policies: the stack file's, then those of a file; given to every pack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.vt.review import plans
from vertex_training.errors import CommandError
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


def test_the_file_wins_over_the_stack_file_policy_by_policy(root: Path) -> None:
    file = written(root, {"registry-cleanup": "mandatory", "job-timeout-bounded": {"maxHours": 24}})
    found = policy_levels.policy_config(root, "dev", file)
    assert found == {
        "job-in-a-network": {"enforcementLevel": "disabled"},
        "registry-cleanup": {"enforcementLevel": "mandatory"},
        "job-timeout-bounded": {"maxHours": 24},
    }
    assert policy_levels.levels_of(found) == {
        "job-in-a-network": "disabled",
        "registry-cleanup": "mandatory",
    }


@pytest.mark.parametrize(
    "content",
    ["{", "[]", {"p": "loud"}, {"p": 3}, {"p": {"enforcementLevel": "off"}}, "[" * 100_000],
)
def test_a_file_of_another_form_is_refused_with_its_name(root: Path, content: object) -> None:
    with pytest.raises(CommandError, match=r"--policy-levels .*levels\.json"):
        policy_levels.policy_config(root, "dev", written(root, content))


def test_a_file_that_is_not_there_is_refused(root: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        policy_levels.policy_config(root, "dev", root / "none.json")


def test_the_engine_gets_a_config_for_each_pack(root: Path) -> None:
    config = policy_levels.policy_config(root, "dev", None)
    found = policy_levels.options(["a", "b"], config, root)
    assert [found[0], found[2], found[4], found[6]] == ["--policy-pack"] * 2 + [
        "--policy-pack-config"
    ] * 2
    assert json.loads(Path(found[5]).read_text()) == config


def test_without_levels_or_packs_the_engine_gets_no_config(root: Path) -> None:
    assert policy_levels.options(["a"], {}, root)[::2] == ["--policy-pack"]
    assert policy_levels.options([], {"p": {"enforcementLevel": "disabled"}}, root) == []
    assert policy_levels.up_options(root, "dev", ["--yes"], None) == []


@pytest.mark.parametrize("arguments", [["--policy-pack", "policy"], ["--policy-pack=policy"]])
def test_an_up_with_a_pack_has_the_levels_of_the_stack_file(
    root: Path, arguments: list[str]
) -> None:
    option, file = policy_levels.up_options(root, "dev", arguments, None)
    assert option == "--policy-pack-config"
    assert json.loads(Path(file).read_text())["job-in-a-network"] == {
        "enforcementLevel": "disabled"
    }


def test_an_up_with_a_config_of_its_own_keeps_it(root: Path) -> None:
    arguments = ["--policy-pack", "policy", "--policy-pack-config", "mine.json"]
    assert policy_levels.up_options(root, "dev", arguments, None) == []


def test_levels_without_a_pack_are_a_mistake(root: Path) -> None:
    with pytest.raises(CommandError, match="add one"):
        policy_levels.up_options(root, "dev", [], written(root, {}))


def test_a_name_that_no_policy_has_is_a_warning() -> None:
    plan = plans.plan(plans.violation("p", "advisory", "m"))
    given = {name: {"enforcementLevel": "advisory"} for name in ("p", "typo")}
    found = policy_levels.with_levels(plan, given)
    assert found.levels == {"p": "advisory"}
    assert [d.message for d in found.diagnostics] == [
        "levels of policies: no policy is called typo"
    ]
