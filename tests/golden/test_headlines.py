"""The headline of every scripted change names what of value goes, and alarms of nothing else.

What goes is annotated at the change (``Change.goes``); headlines are read in committed reports.
"""

from __future__ import annotations

import re

import pytest

from tests.golden.test_answers import ALL
from tests.golden.test_reviews import REPORTS
from vertex_training_cli.review.headline import PARTS
from vertex_training_cli.review.risks import RISKS

#: What a headline says before names of what is in danger.
ALARMS = {kind.headline for kind in RISKS if kind.headline}
#: Of a cloud that was changed by hand, or of a change that the large stack has no place for, as of
#: models and endpoints: ``plans.yaml`` has them.
ELSEWHERE = {
    "deleted in the cloud, recreated without data",
    "manual change undone",
    "upload allowed despite a possible secret",
    "loss accepted",
    "refused by Google or without effect",
    "guards lowered",
    "traffic to a worse or unmeasured version",
    "job replaced, although a model version uses its run",
    "endpoint becomes public",
    "endpoint that serves traffic deleted or replaced",
    "model version deleted",
    "higher monthly cost of endpoints",
    "possible personal data in snapshots",
    "notifications reduced",
    "custom roles with new permissions",
    "new account keys",
    "permissions no longer denied to",
    "jobs moved to another service",
    "new external addresses of",
    "changed conditions of grants",
    "changed external sign-in",
}


def headline(name: str) -> str:
    """The sentence below the title, without the quotes of names and values."""
    [found] = re.findall(r"^\*\*(.*)\.\*\*$", (REPORTS / f"{name}.md").read_text(), re.MULTILINE)
    return found.replace("`", "")


def alarms(sentence: str) -> set[str]:
    return {part.partition(":")[0] for part in sentence.split("; ")} & ALARMS


def test_there_are_forty_different_changes_or_more() -> None:
    scripts = {
        (stack, each.stack, each.job, each.all_jobs, each.program, each.flags)
        for stack, _, each in ALL.values()
    }
    assert len(scripts) == len(ALL) >= 40


@pytest.mark.parametrize("name", ALL)
def test_a_headline_names_what_of_value_goes(name: str) -> None:
    *_, change = ALL[name]
    told = headline(name)
    assert [phrase for phrase in change.goes if phrase.lower() not in told.lower()] == [], told


@pytest.mark.parametrize("name", ALL)
def test_a_headline_alarms_of_nothing_that_stays(name: str) -> None:
    *_, change = ALL[name]
    wanted = {phrase.partition(":")[0] for phrase in change.goes}
    assert alarms(headline(name)) == wanted & ALARMS


@pytest.mark.parametrize("name", ALL)
def test_a_headline_is_readable(name: str) -> None:
    assert len(headline(name).split("; ")) <= PARTS


def test_every_kind_of_alarm_is_in_a_change() -> None:
    seen = {alarm for name in ALL for alarm in alarms(headline(name))}
    assert ALARMS - seen == ELSEWHERE
