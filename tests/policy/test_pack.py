"""The pack in its own environment, and with the real engine."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from localgcp.gcp import schema
from tests.conftest import Checkout
from tests.fixture_project import source_path
from tests.policy import cases
from vertex_training.guardrails.policy import NOT_IN_STACKS, load

HERE: Final = Path(__file__).parent
PYTHON: Final = cases.ROOT / ".venv" / "policy" / "bin" / "python"

PROJECT: Final = "name: broken\nruntime: {name: python, options: {virtualenv: ../.venv}}\n"
#: Types that the plugin lacks are declared as components, which policies check all the same.
PROGRAM: Final = """\
import json
import pathlib
import pulumi

for case in json.loads(pathlib.Path("cases.json").read_text()):
    options = pulumi.ResourceOptions(protect=case["protect"])
    if case["known"]:
        pulumi.CustomResource(case["type"], case["name"], case["props"], options)
    else:
        pulumi.ComponentResource(case["type"], case["name"], case["props"], options)
"""


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """Violations by case, from the pack's own environment."""
    ran = subprocess.run(
        [PYTHON, HERE / "run_in_pack_environment.py"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_sdk_serves_the_policies_with_the_same_answers(answers: dict[str, Any]) -> None:
    assert answers["right"] == {}
    for case in cases.wrong():
        assert set(answers[case.id]) == set(case.policies), case.id
        assert case.says in answers[case.id][case.policies[0]][0]


def test_an_unknown_value_passes_in_a_preview(answers: dict[str, Any]) -> None:
    assert answers["unknown"] == {}


def test_a_policy_of_a_repository_is_served_beside_ours(tmp_path: Path) -> None:
    """The one of the page, in a folder as `policy/` of a repository is."""
    page = (cases.ROOT / "docs" / "review.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "names.py").write_text(code)
    (tmp_path / "__main__.py").write_text(
        "import names\n"
        "from vertex_training.guardrails import pack, policy\n"
        "served = {each.name for each in map(pack.to_sdk_policy, policy.load())}\n"
        "wrong = policy.Resource('gcp:storage/bucket:Bucket', 'b', {'name': 'x'}, 'prod')\n"
        "print(len(served), policy.POLICIES['acme-names'].violations(wrong))\n"
    )
    ran = subprocess.run(
        [PYTHON, tmp_path],
        env={"PYTHONPATH": source_path(cases.ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f'{len(load()) + 1} ["its name begins otherwise.')


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("stack", "options"),
    [
        pytest.param("dev", "", marks=pytest.mark.nightly),
        ("prod", "--policy-pack-config levels.json"),
    ],
)
def test_the_stacks_keep_every_policy(checkout: Checkout, stack: str, options: str) -> None:
    everywhere = {"enforcementLevel": "mandatory", NOT_IN_STACKS: []}
    levels = {policy.id: everywhere for policy in load() if policy.settings[NOT_IN_STACKS]}
    (checkout.path / "levels.json").write_text(json.dumps(levels))
    shown = checkout.shell(f"pulumi preview -s {stack} --policy-pack policy {options}").stdout
    assert re.search(r"✅ training-guardrails@v", shown), shown


@pytest.mark.e2e
def test_of_a_stack_with_every_kind_of_mistake_each_is_named(checkout: Checkout) -> None:
    folder = checkout.path / "broken"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text(PROJECT)
    (folder / "Pulumi.prod.yaml").write_text("config: {}\n")
    (folder / "__main__.py").write_text(PROGRAM)
    wrong = [
        {
            "type": case.bad.type,
            "name": case.bad.name,
            "props": dict(case.bad.props),
            "protect": case.bad.protect,
            "known": schema.find(case.bad.type) is not None,
        }
        for case in cases.wrong()
    ]
    (folder / "cases.json").write_text(json.dumps(wrong))
    levels = {
        name: {"enforcementLevel": "mandatory", **given} for name, given in cases.SETTINGS.items()
    }
    (folder / "levels.json").write_text(json.dumps(levels))
    shown = checkout.shell(
        "cd broken && pulumi preview -s prod --policy-pack ../policy "
        "--policy-pack-config levels.json",
        expect=1,
    ).stdout
    found = set(re.findall(r"\[mandatory\] \[severity: \w+\]  ([\w-]+)  \(\S+: ([\w-]+)\)", shown))
    expected = {(policy, case.bad.name) for case in cases.wrong() for policy in case.policies}
    assert found == expected
    assert {policy for policy, _ in found} == {policy.id for policy in load()}
    assert "Traceback" not in shown
