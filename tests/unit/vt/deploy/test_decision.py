"""Go or stop: every way in which what would be deployed is not what was approved."""

import dataclasses

from vertex_training.errors import Problem
from vertex_training_cli.deploy.approval import Approval
from vertex_training_cli.deploy.decision import (
    Checkout,
    checkout_problems,
    plan_problems,
    target_problems,
)
from vertex_training_cli.deploy.target import Target

TARGET = Target(
    backend="gs://acme-state",
    deploy_account="deploy@acme.iam.gserviceaccount.com",
    identity_provider="projects/1/locations/global/workloadIdentityPools/g/providers/github",
    settings={"gcp:project": "acme-ml-dev"},
)
APPROVED = Approval(
    stack="dev", commit="c" * 40, tree="a" * 40, report="f" * 64, target=TARGET
)  # fmt: skip
HERE = Checkout(commit="d" * 40, tree="a" * 40)
ANEW = (
    "read the new report (`make preview STACK=dev`) and approve that one: "
    "`vt approval --stack dev DIGEST`"
)


def test_another_commit_of_the_same_content_goes():
    assert checkout_problems(APPROVED, "dev", HERE) == []


def test_another_content_stops_and_says_whose_approval_it_is():
    [problem] = checkout_problems(APPROVED, "dev", dataclasses.replace(HERE, tree="b" * 40))
    assert problem == Problem(
        what="it is for the content of commit cccccccccccc, and this is another",
        value="dddddddddddd",
        hint=ANEW,
        path=("approval of dev",),
    )


def test_another_stack_stops():
    assert checkout_problems(APPROVED, "prod", HERE) == [
        Problem(
            what="it is for another stack",
            value="prod",
            hint="take the record that was made for this stack",
            path=("approval of dev",),
        )
    ]


def test_files_that_the_commit_does_not_have_stop():
    changed = dataclasses.replace(HERE, changed=("infra/vertex_training/program.py",))
    [problem] = checkout_problems(APPROVED, "dev", changed)
    assert "infra/vertex_training/program.py" in str(problem)


def test_files_beside_the_commit_are_named_by_what_is_wrong_with_them():
    here = Checkout("d" * 40, "a" * 40, changed=("a.py", "b.py"), added=("c.py", "d.yaml"))
    problems = here.problems()
    assert [(problem.what, problem.value, problem.path) for problem in problems] == [
        ("files differ from the commit", "a.py, b.py", ("checkout",)),
        (
            "the commit does not have files that a program could read",
            "c.py, d.yaml",
            ("checkout",),
        ),
    ]
    conversion = "; where `git diff` shows nothing, git converts them (attributes, autocrlf)"
    assert [problem.hint for problem in problems] == [
        f"commit or undo them: a commit is deployed, not a folder{conversion}",
        "commit or remove them: a commit is deployed, not a folder",
    ]
    assert HERE.problems() == []


def test_all_reasons_are_told_at_once():
    worst = Checkout(commit="d" * 40, tree="b" * 40, changed=("a",))
    assert len(checkout_problems(APPROVED, "prod", worst)) == 3


def test_the_approved_plan_goes_and_any_other_stops():
    assert plan_problems(APPROVED, "f" * 64) == []
    assert plan_problems(APPROVED, "e" * 64) == [
        Problem(
            what="the plan is not the approved one, whose digest is ffffffffffff",
            value="eeeeeeeeeeee",
            hint=ANEW,
            path=("plan of dev",),
        )
    ]


def test_the_approved_target_goes_signed_in_as_approved():
    used = (TARGET.deploy_account, TARGET.identity_provider)
    assert target_problems(APPROVED, TARGET, *used) == []


def test_every_fact_of_another_target_is_told_with_what_was_approved():
    other = Target(
        backend="gs://mallory",
        deploy_account=TARGET.deploy_account,
        identity_provider=TARGET.identity_provider,
        settings={"gcp:project": "acme-ml-dev", "gcp:accessToken": "[sha256:0]"},
        redirects={"STORAGE_EMULATOR_HOST": "http://mallory"},
    )
    found = target_problems(APPROVED, other, "", "")
    texts = [problem.what for problem in found]
    assert texts == [
        "backend is not the approved one: gs://acme-state -> gs://mallory",
        "gcp:accessToken is not the approved one: (none) -> [sha256:0]",
        "STORAGE_EMULATOR_HOST is not the approved one: (none) -> http://mallory",
        f"the account signed in is not the approved one: {TARGET.deploy_account} -> (none)",
        "the identity provider signed in is not the approved one: "
        f"{TARGET.identity_provider} -> (none)",
    ]
    others = {(problem.value, problem.hint, problem.path) for problem in found}
    assert others == {("", f"put it back, or approve the new one: {ANEW}", ("target of dev",))}


def test_where_no_account_was_approved_whoever_is_signed_in_deploys():
    approved = APPROVED.model_copy(update={"target": Target(backend="gs://acme-state")})
    assert target_problems(approved, Target(backend="gs://acme-state"), "ann@example.com", "") == []
