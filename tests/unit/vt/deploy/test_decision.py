"""Go or stop: every way in which what would be deployed is not what was approved."""

import dataclasses

from vt.deploy.approval import Approval
from vt.deploy.decision import Checkout, checkout_problems, plan_problems

APPROVED = Approval(stack="dev", commit="c" * 40, tree="a" * 40, report="f" * 64)
HERE = Checkout(commit="d" * 40, tree="a" * 40)


def test_another_commit_of_the_same_content_goes():
    assert checkout_problems(APPROVED, "dev", HERE) == []


def test_another_content_stops_and_says_whose_approval_it_is():
    [problem] = checkout_problems(APPROVED, "dev", dataclasses.replace(HERE, tree="b" * 40))
    assert "commit cccccccccccc" in problem.what
    assert problem.value == "dddddddddddd"
    assert "make preview STACK=dev" in problem.hint


def test_another_stack_stops():
    [problem] = checkout_problems(APPROVED, "prod", HERE)
    assert "another stack" in problem.what


def test_files_that_the_commit_does_not_have_stop():
    changed = dataclasses.replace(HERE, changed=("infra/program.py",))
    [problem] = checkout_problems(APPROVED, "dev", changed)
    assert "infra/program.py" in str(problem)


def test_all_reasons_are_told_at_once():
    worst = Checkout(commit="d" * 40, tree="b" * 40, changed=("a",))
    assert len(checkout_problems(APPROVED, "prod", worst)) == 3


def test_the_approved_plan_goes_and_any_other_stops():
    assert plan_problems(APPROVED, "f" * 64) == []
    [problem] = plan_problems(APPROVED, "e" * 64)
    assert "ffffffffffff" in problem.what
    assert problem.value == "eeeeeeeeeeee"
