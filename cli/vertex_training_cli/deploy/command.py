"""The command lines of ``vt approval`` and ``vt deploy``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from vertex_training.errors import ApprovalParseError, CommandError, Problem
from vertex_training_cli.deploy import sources
from vertex_training_cli.deploy.approval import (
    Approval,
    checkout_problems,
    make_approval,
    parse_approval,
    plan_problems,
    signed_in,
    target_of,
    target_problems,
)
from vertex_training_cli.deploy.sources import PlanInputs
from vertex_training_cli.deploy.state_code import state_problems
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.options import StackOfFile
from vertex_training_cli.status import print_line, print_status

PolicyPack = Annotated[
    str | None, typer.Option(help="Policy pack that must pass, in the review and in `vt up`.")
]
PolicyLevels = Annotated[
    Path | None,
    typer.Option(
        help="JSON file with policy levels, which override the stack file.", resolve_path=True
    ),
]
#: Exit code: the plan, the commit, the stack or the target is not the approved one.
STOPPED: Final = 3


def approval(
    stack: StackOfFile,
    digest: Annotated[
        str, typer.Argument(help="Digest of the approved report, or the report as a JSON file.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead of stdout.")
    ] = None,
) -> None:
    """Write an approval record: the report's digest, the stack and the checked-out commit.

    Example: `vt approval --stack dev plan.json -o approval.json`.

    Exit code: 0 written, 1 the report cannot be approved.
    """
    approved, ref = digest, stacks.find(stack)
    if Path(digest).is_file():
        text = Path(digest).read_text(encoding="utf-8", errors="replace")
        approved = sources.approvable_digest_in(text, ref.stack)
    here = sources.checkout(ref.root, ref.stack)
    if problems := here.problems():
        raise CommandError("; ".join(map(str, problems)))
    fields = {"stack": stack, "commit": here.commit, "tree": here.tree, "report": approved}
    fields |= {"target": target_of(ref).model_dump()}
    record = make_approval(fields).as_json()
    if output is None:
        print(record)
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(record + "\n", encoding="utf-8")


def deploy(
    stack: StackOfFile,
    approved: Annotated[
        str,
        typer.Option(
            "--approval",
            envvar="VT_APPROVAL",
            help="Approval record of `vt approval`: a file, or the record itself.",
        ),
    ],
    policy_pack: PolicyPack = None,
    policy_levels: PolicyLevels = None,
    refresh: Annotated[
        bool,
        typer.Option("--refresh", help="Refresh the state first, so that the plan undoes drift."),
    ] = False,
) -> None:
    """Review the stack again and run `vt up` if the plan equals the approved plan.

    If the state names a provider of another project, the command refuses the deployment, because
    the engine would run this provider's code.

    Example: `vt deploy --stack dev --approval approval.json`.

    Exit code: 1 the comparison failed, 3 refused: the plan, the commit, the stack or its target
    (backend, accounts, provider settings) differs from the approval, or the state contains foreign
    code; otherwise that of `vt up`.
    """
    try:
        record = parse_approval(_text_of(approved))
    except ApprovalParseError as reason:
        text = f"--approval contains no approval record: {reason}."
        raise CommandError(text, "write the record by `vt approval`.") from None
    ref = stacks.find(stack)
    inputs = sources.PlanInputs(policy_pack, refresh, policy_levels)
    env = ref.deployment_environment(print_status)
    with sources.plan_held(ref.root, ref.stack):
        if reasons := _reasons(record, ref, inputs, env):
            _stop(stack, reasons)
        print_line(f"vt deploy: the plan of {stack} equals the approved plan")
        os.chdir(ref.root)
        command = sources.up_command(ref.root, stack, inputs)
        os.execve(command[0], command, env)


def _reasons(
    record: Approval, ref: StackRef, inputs: PlanInputs, env: Mapping[str, str]
) -> list[Problem]:
    """Return the reasons not to deploy that the first failing check reports; empty if all pass."""
    here = sources.checkout(ref.root, ref.stack, inputs.policy_pack)
    return (
        checkout_problems(record, ref.stack, here)
        or target_problems(record, target_of(ref, env), *signed_in(env))
        or state_problems(sources.deployment(ref, env))
        or plan_problems(record, sources.review(ref.root, ref.stack, inputs))
    )


def _stop(stack: str, reasons: list[Problem]) -> NoReturn:
    print_line(f"vt deploy: the deployment of stack {stack} was refused. Nothing was changed.")
    for reason in reasons:
        print_line(reason)
    raise typer.Exit(STOPPED)


def _text_of(approval: str) -> str:
    if approval.lstrip().startswith("{"):
        return approval
    # A file that is no text is no record: `parse_approval` refuses it.
    return Path(approval).read_text(encoding="utf-8", errors="replace")
