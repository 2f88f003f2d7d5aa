"""Go or stop: every way in which what would be deployed is not what was approved."""

from vertex_training.errors import Problem
from vertex_training_cli.deploy.approval import (
    Approval,
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


def test_another_stack_stops():
    assert checkout_problems(APPROVED, "prod", HERE) == [
        Problem(
            what="it is for another stack",
            value="prod",
            hint="take the record that was made for this stack",
            path=("approval of dev",),
        )
    ]


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
