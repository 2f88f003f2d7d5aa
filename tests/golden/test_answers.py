"""The headline of every scripted change answers what an approver asks.

What it must answer follows from the script of the change (``expectations``); what it answers is
read in the committed reports, above their first section.
"""

from __future__ import annotations

import pytest

from tests.golden import changes, expectations
from tests.golden.test_reviews import REPORTS

SCRIPTS = {
    **{name: (changes.STACK, changes.JOB, change) for name, change in changes.LIVE.items()},
    **{
        name: (changes.LARGE_STACK, changes.LARGE_JOB, change)
        for name, change in changes.RECORDED.items()
    },
}
#: Whether jobs of the first stack still run differs from run to run: its reports do not say it.
NOT_IN_LIVE = "what stops"
QUESTIONS = tuple(expectations.expected(changes.STACK, changes.JOB, changes.Change()))


def answered(name: str) -> dict[str, str]:
    """Question -> answer in the headline of a report; an empty one where it is "nothing"."""
    headline, _, _ = (REPORTS / f"{name}.md").read_text().partition("\n###")
    rows = [line.strip("| ").split(" | ", 1) for line in headline.splitlines() if line[:2] == "| "]
    [nothing] = [line for line in headline.splitlines() if line.startswith("Nothing: ")] or [""]
    found = {question: answer for question, answer in rows if question != "question"}
    words = nothing.removeprefix("Nothing: ").removesuffix(".").split(", ")
    return found | {question: "" for question in words if question}


def test_there_are_twenty_five_changes_and_twelve_questions() -> None:
    assert len(SCRIPTS) >= 25
    assert len(QUESTIONS) == 12


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_question_is_answered_once(name: str) -> None:
    left_out = {NOT_IN_LIVE} if name in changes.LIVE else set()
    assert set(answered(name)) == set(QUESTIONS) - left_out


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_answer_is_what_the_script_of_the_change_says(name: str, question: str) -> None:
    if name in changes.LIVE and question == NOT_IN_LIVE:
        pytest.skip("whether these jobs still run differs from run to run")
    stack, job, change = SCRIPTS[name]
    if change.exit_code in (1, 4) and question != "what was not looked at":
        pytest.skip("the preview failed: the report says that it is not whole")
    wanted, told = expectations.expected(stack, job, change)[question], answered(name)[question]
    if not wanted:
        assert told == ""
    elif wanted is True:
        assert told
    else:
        assert [word for word in wanted if word not in told] == [], told
