"""The record of an approval: a commit's content, a stack, its target, a plan's digest.

Whether a deployment is the approved one: pure, it compares checkout, target and plan with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from vertex_training.errors import ApprovalParseError, Problem
from vertex_training_cli.deploy.target import Target

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
#: Object ids of git: SHA-1 or SHA-256, in full.
ObjectId = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
StackName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]


class Approval(BaseModel):
    """What may be deployed.

    ``commit`` is for people. What is compared is ``tree``, the id of its content: merging makes
    another commit of the same content, whichever way it is done.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[2] = 2
    stack: StackName
    commit: ObjectId
    tree: ObjectId
    report: Digest
    """The digest that ``vt review`` prints."""
    target: Target
    """Where it may be deployed to."""

    def as_json(self) -> str:
        """The record on one line, for ``parse_approval``."""
        return self.model_dump_json()


def parse_approval(text: str) -> Approval:
    """The record in ``text``.

    Raises:
        ApprovalParseError: it is none.
    """
    return _validated(lambda: Approval.model_validate_json(text.strip()))


def make_approval(fields: Mapping[str, object]) -> Approval:
    """The record with these fields.

    Raises:
        ApprovalParseError: they do not make one.
    """
    return _validated(lambda: Approval.model_validate(fields))


def _validated(read: Callable[[], Approval]) -> Approval:
    try:
        return read()
    except pydantic.ValidationError as failed:
        found = "; ".join(_field_error(error["loc"], error["msg"]) for error in failed.errors())
        raise ApprovalParseError(found) from None


def _field_error(path: tuple[int | str, ...], message: str) -> str:
    where = ".".join(str(part) for part in path)
    return f"{where}: {message}" if where else message


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
