"""Every policy on correct and on wrong resources, without an engine."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from tests.policy import cases
from vertex_training.guardrails.policy import POLICIES as REGISTERED
from vertex_training.guardrails.policy import UNKNOWN, Resource, configure, load

LEVELS: Final = ("advisory", "mandatory", "disabled")
POLICIES: Final = {policy.id: policy for policy in load()}


def objections(declared: cases.Declared, stack: str = "prod") -> dict[str, list[str]]:
    """Policy id -> violations, of all policies that the resource violates in ``stack``.

    The accounts of the cases are those of the stack.
    """
    props = dict(declared.props)
    if isinstance(props.get("request"), str):
        props["request"] = props["request"].replace("trainer-prod@", f"trainer-{stack}@")
    resource = Resource(declared.type, declared.name, props, stack=stack, protect=declared.protect)
    found = {
        policy.id: policy.violations(resource, cases.SETTINGS.get(policy.id))
        for policy in POLICIES.values()
    }
    return {name: violations for name, violations in found.items() if violations}


@pytest.mark.parametrize("declared", cases.right(), ids=lambda declared: declared.name)
def test_no_policy_objects_to_what_is_right(declared: cases.Declared) -> None:
    assert objections(declared) == {}


@pytest.mark.parametrize("case", cases.wrong(), ids=lambda case: case.id)
def test_one_change_violates_that_policy_alone(case: cases.Case) -> None:
    found = objections(case.bad)
    assert set(found) == set(case.policies)
    [violation] = found[case.policies[0]]
    assert case.says in violation
    assert "Hint: " in violation
    assert objections(case.good) == {}


def test_every_policy_has_a_case() -> None:
    assert set(cases.CONTENT["cases"]) == set(POLICIES)


@pytest.mark.parametrize("stack", ["dev", "local", "dev-2"])
def test_rehearsals_are_spared_what_only_production_needs(stack: str) -> None:
    spared = {
        policy
        for case in cases.wrong()
        for policy in set(objections(case.bad)) - set(objections(case.bad, stack))
    }
    assert spared == {
        "bucket-deleted-objects-restorable",
        "bucket-objects-not-deleted-by-age",
        "bucket-old-versions-kept",
        "data-protected",
        "endpoint-not-public",
        "job-image-by-digest",
        "job-in-a-network",
        "model-image-by-digest",
        "registry-immutable-tags",
        "registry-keeps-images-in-use",
        "secret-protected",
    }


@pytest.mark.parametrize("stack", ["prod", "prod-eu", "staging"])
def test_a_stack_nobody_thought_of_is_held_to_everything(stack: str) -> None:
    for case in cases.wrong():
        assert set(objections(case.bad, stack)) == set(case.policies)


def test_settings_change_what_a_policy_asks_for() -> None:
    job = next(declared for declared in cases.right() if declared.name == "job")
    resource = Resource(job.type, job.name, job.props, stack="prod")
    timeout = POLICIES["job-timeout-bounded"]
    assert timeout.violations(resource, {"maxHours": 48}) == []
    [violation] = timeout.violations(resource, {"maxHours": 24})
    assert "48 hours, the limit is 24" in violation
    key = POLICIES["own-key-where-required"]
    keyless = Resource("gcp:storage/bucket:Bucket", "b", {"location": "US-CENTRAL1"}, stack="prod")
    assert key.violations(keyless) == []


def test_a_repository_gives_a_policy_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTERED, "job-in-a-network", REGISTERED["job-in-a-network"])
    before = REGISTERED["job-in-a-network"].settings
    configure("job-in-a-network", without=["training-mnist"])
    assert REGISTERED["job-in-a-network"].settings == {**before, "without": ["training-mnist"]}
    for wrong in ({"witout": []}, {"without": "all"}):
        with pytest.raises(ValueError, match="job-in-a-network"):
            configure("job-in-a-network", **wrong)
    with pytest.raises(ValueError, match="policy job-in-network does not exist"):
        configure("job-in-network", without=[])


def with_one_value_unknown(value: Any) -> Iterator[Any]:
    """The value once for each of its parts, at any depth, with that part unknown."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        changed = copy.copy(value)
        changed[key] = UNKNOWN
        yield changed
        if isinstance(part, dict | list):
            for inner in with_one_value_unknown(part):
                changed = copy.copy(value)
                changed[key] = inner
                yield changed


@pytest.mark.parametrize("declared", cases.right(), ids=lambda declared: declared.name)
def test_what_is_not_known_yet_is_no_violation(declared: cases.Declared) -> None:
    for props in with_one_value_unknown(dict(declared.props)):
        later = cases.Declared(declared.type, declared.name, props, declared.protect)
        found = objections(later)
        assert found == {}, props


def test_the_pages_levels_name_policies_settings_and_levels_that_exist() -> None:
    page = (cases.ROOT / "docs" / "review.md").read_text()
    [example] = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    for name, given in json.loads(example).items():
        own = dict(given)
        assert own.pop("enforcementLevel") in LEVELS
        for key, value in own.items():
            assert type(value) is type(POLICIES[name].settings[key]), (name, key)


def test_the_levels_of_the_pages_stack_file_are_of_policies_that_exist() -> None:
    page = (cases.ROOT / "docs" / "review.md").read_text()
    [line] = re.findall(r"^vertex-training:policyLevels: .*", page, re.MULTILINE)
    [levels] = yaml.safe_load(line).values()
    assert set(levels) <= set(POLICIES)
    assert set(levels.values()) <= set(LEVELS)


def test_the_sites_tables_have_every_policy() -> None:
    from tools.generate.reference import policy_tables

    assert re.findall(r"^\| `(\S+)` \|", policy_tables(), re.MULTILINE) == list(POLICIES)
