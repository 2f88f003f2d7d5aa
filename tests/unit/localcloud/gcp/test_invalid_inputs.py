"""The stand-in refuses in Check what the official plugin 9.35.0 refuses, in the same words."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
import yaml

from localgcp.gcp import rules
from tests.unit.localcloud.gcp.harness import FIXTURES, Plugin

NETWORK = "gcp:compute/network:Network"
DATA = yaml.safe_load(Path(__file__).with_name("invalid_inputs.yaml").read_text("utf-8"))
CASES, ELSEWHERE = DATA["cases"], DATA["elsewhere"]


def measured() -> dict[str, list[str]]:
    """Messages of each case (none: the plugin let it pass)."""
    cases: dict[str, list[str]] = {}
    name = ""
    for line in (FIXTURES / "gcp-invalid-inputs.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            name = line.split()[1]
            cases[name] = []
        elif "' has a problem: " in line:
            cases[name].append(line.partition("' has a problem: ")[2])
    return cases


MEASURED = measured()


def test_every_measured_case_is_tested_or_has_a_reason() -> None:
    assert set(MEASURED) == set(CASES) | set(ELSEWHERE)


@pytest.mark.parametrize("case", CASES)
def test_check_says_what_the_official_plugin_says(abroad: Plugin, case: str) -> None:
    token, inputs = CASES[case]

    answer = abroad.check(f"gcp:{token}", "x", inputs)

    # The official plugin walks its properties in no particular order.
    assert sorted(f.reason for f in answer.failures) == sorted(MEASURED[case])
    # A property would make the engine print its value, even a secret one.
    assert {f.property for f in answer.failures} <= {""}


def test_a_name_that_cannot_be_made_short_enough_fails_in_the_plugins_words(
    abroad: Plugin,
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        abroad.check(NETWORK, "n" * 63, {})

    assert caught.value.details() == (
        f"could not make instance of '{NETWORK}': name '{'n' * 63}-' plus 7 random chars is "
        "longer than maximum length 63"
    )


@pytest.mark.parametrize("name", DATA["rules"])
def test_bounds_are_where_the_plugin_has_them(name: str) -> None:
    rule, values = getattr(rules, name), DATA["rules"][name]
    assert [value for value in values["right"] if rule(value) is not None] == []
    assert [value for value in values["wrong"] if rule(value) is None] == []
