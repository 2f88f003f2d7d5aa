"""Whether a deployment is approved. Pure: compares it with checkout, target and plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vertex_training.errors import Problem
from vertex_training_cli.deploy.approval import Approval
from vertex_training_cli.deploy.target import Target

NEW_APPROVAL_HINT: Final = (
    "read the new report (`make preview STACK={stack}`) and approve that one: "
    "`vt approval --stack {stack} DIGEST`"
)


@dataclass(frozen=True, slots=True)
class Checkout:
    """What would be deployed: a commit and its content, and what a folder has beside it."""

    commit: str
    tree: str
    changed: tuple[str, ...] = ()
    """Tracked files that are unlike the commit's."""
    added: tuple[str, ...] = ()
    """Code and YAML that the commit does not have."""
    environments: tuple[str, ...] = ()
    """Files of the engine whose code would run in an environment that nothing binds."""

    def problems(self) -> list[Problem]:
        """What a program would run or read, and the commit does not bind."""
        conversion = "; where `git diff` shows nothing, git converts them (attributes, autocrlf)"
        kinds = (
            ("files differ from the commit", self.changed, "undo", conversion),
            ("the commit does not have files that a program could read", self.added, "remove", ""),
        )
        hint = "commit or {} them: a commit is deployed, not a folder{}"
        found = [
            Problem(what, ", ".join(names), hint.format(otherwise, note), ("checkout",))
            for what, names, otherwise, note in kinds
            if names
        ]
        if self.environments:
            what = "code would run in another environment than .venv"
            mend = "write `virtualenv: .venv`, which `make setup DEPLOY=1` fills by hashes"
            found.append(Problem(what, ", ".join(self.environments), mend, ("checkout",)))
        return found


def checkout_problems(approval: Approval, stack: str, checkout: Checkout) -> list[Problem]:
    """Reasons not to deploy that are known before anything is planned; empty if there are none."""
    path, found = (f"approval of {approval.stack}",), list[Problem]()
    if approval.stack != stack:
        hint = "take the record that was made for this stack"
        found.append(Problem("it is for another stack", stack, hint, path))
    found += checkout.problems()
    if approval.tree != checkout.tree:
        what = f"it is for the content of commit {approval.commit[:12]}, and this is another"
        found.append(
            Problem(what, checkout.commit[:12], NEW_APPROVAL_HINT.format(stack=stack), path)
        )
    return found


def target_problems(
    approval: Approval, target: Target, account: str, identity_provider: str
) -> list[Problem]:
    """Reasons not to deploy to ``target``, signed in as ``account`` by ``identity_provider``."""
    stack, approved = approval.stack, approval.target
    hint = f"put it back, or approve the new one: {NEW_APPROVAL_HINT.format(stack=stack)}"
    path = (f"target of {stack}",)
    found = [
        Problem(f"{name} is not the approved one: {_shown(old)} -> {_shown(new)}", "", hint, path)
        for name, old, new in approved.differences(target)
    ]
    used = (
        ("account", approved.deploy_account, account),
        ("identity provider", approved.identity_provider, identity_provider),
    )
    for name, wanted, real in used:
        if wanted and wanted != real:
            what = f"the {name} signed in is not the approved one: {wanted} -> {_shown(real)}"
            found.append(Problem(what, "", hint, path))
    return found


def _shown(value: str) -> str:
    return value or "(none)"


def plan_problems(approval: Approval, report: str) -> list[Problem]:
    """Reasons that a fresh review gives: its plan has the digest ``report``."""
    if approval.report == report:
        return []
    what = f"the plan is not the approved one, whose digest is {approval.report[:12]}"
    hint = NEW_APPROVAL_HINT.format(stack=approval.stack)
    return [Problem(what, report[:12], hint, (f"plan of {approval.stack}",))]
