"""The command lines of ``vt approval`` and ``vt deploy``."""

from __future__ import annotations

import base64
import binascii
import os
import pickletools
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from vertex_training.errors import ApprovalParseError, CommandError, Problem
from vertex_training_cli.console import print_line, print_status
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
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.options import StackOfFile

PolicyPack = Annotated[
    str | None, typer.Option(help="Policy pack that must pass, in the review and in `vt up`.")
]
PolicyLevels = Annotated[
    Path | None,
    typer.Option(
        help="JSON file with policy levels, which override the stack file.", resolve_path=True
    ),
]
#: Exit code: the plan, the commit, the stack or the target differs from the approval.
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
    text = approved
    if not approved.lstrip().startswith("{"):
        text = Path(approved).read_text(encoding="utf-8", errors="replace")
    try:
        record = parse_approval(text)
    except ApprovalParseError as reason:
        what = f"--approval contains no approval record: {reason}."
        raise CommandError(what, "write the record with `vt approval`.") from None
    ref = stacks.find(stack)
    options = sources.plan_options(policy_pack, policy_levels, refresh=refresh)
    env = ref.deployment_environment(print_status)
    with sources.plan_held(ref.root, ref.stack):
        if reasons := _reasons(record, ref, env, policy_pack, options):
            print_line(f"vt deploy: stack {stack} was not deployed. Nothing was changed.")
            for reason in reasons:
                print_line(reason)
            raise typer.Exit(STOPPED)
        print_line(f"vt deploy: the plan of {stack} equals the approved plan")
        os.chdir(ref.root)
        command = sources.up_command(ref.root, stack, options)
        os.execve(command[0], command, env)


def _reasons(
    record: Approval,
    ref: StackRef,
    env: Mapping[str, str],
    policy_pack: str | None,
    options: Sequence[str],
) -> list[Problem]:
    """Return the reasons against the deployment from the first check that fails."""
    here = sources.checkout(ref.root, ref.stack, policy_pack)
    return (
        checkout_problems(record, ref.stack, here)
        or target_problems(record, target_of(ref, env), *signed_in(env))
        or state_problems(PulumiCli(ref.root, env).export_deployment(ref.stack))
        or plan_problems(record, sources.review(ref.root, ref.stack, options))
    )


#: Key of the pickled provider in the state (``pulumi.dynamic.dynamic.PROVIDER_KEY``).
_PROVIDER_KEY: Final = "__provider"
#: Module and class of each of the program's own dynamic providers.
_OWN_PROVIDERS: Final = (
    ("vertex_training.customjob.provider", "CustomJobProvider"),
    ("vertex_training.serving.provider", "ModelVersionProvider"),
    ("vertex_training.serving.provider", "EndpointCleanupProvider"),
    ("vertex_training.serving.provider", "DeployedModelsProvider"),
    ("vertex_training.snapshots.provider", "SnapshotProvider"),
    ("vertex_training.schedules.provider", "JobScheduleProvider"),
)
#: Pickle opcodes that the SDK writes for each own provider: module and name of its class, and a
#: call without arguments. Opcodes that depend on the pickle protocol are omitted.
_TEXT: Final = "SHORT_BINUNICODE"
_CALL: Final = [_TEXT, _TEXT, "STACK_GLOBAL", "EMPTY_TUPLE", "NEWOBJ", "STOP"]
_WITHOUT_EFFECT: Final = ("PROTO", "FRAME", "MEMOIZE")
#: Maximum length of a pickled provider's text. An own provider has about 110 characters.
_LONGEST: Final = 500
_DYNAMIC: Final = "pulumi-python:dynamic"
_PROVIDER: Final = "pulumi:providers:"
#: Plugins that the program uses. The engine starts every plugin that the state lists.
_PLUGINS: Final = ("gcp", "pulumi-python")
#: Inputs of a provider that name another program to download and run.
_DOWNLOADS: Final = ("pluginDownloadURL", "parameterization")
_HINT: Final = (
    "find out which account wrote the state (`gcloud storage ls -a`), and restore an older "
    "generation of the state"
)


def state_problems(deployment: Mapping[str, Any]) -> list[Problem]:
    """Return problems about code in the state that is not this project's.

    The engine unpickles the provider of each dynamic resource in the state, which can run any code.
    Only providers of this program, without arguments, are accepted.
    """
    pending = (e.get("resource") or {} for e in deployment.get("pending_operations") or ())
    resources = (*(deployment.get("resources") or ()), *pending)
    return [problem for resource in resources for problem in _problems(resource)]


def _problems(resource: Mapping[str, Any]) -> Iterator[Problem]:
    urn, type_ = str(resource.get("urn", "")), str(resource.get("type"))
    path = ("state", urn.rpartition("::")[2])
    states = [resource.get("inputs") or {}, resource.get("outputs") or {}]
    if type_.startswith(_PROVIDER):
        if (name := type_.removeprefix(_PROVIDER)) not in _PLUGINS:
            what = "the state names a plugin that the program does not use"
            yield Problem(what, name, _HINT, path)
        for key in _DOWNLOADS:
            if any(_has_key(state, key) for state in states):
                yield Problem(f"the state's {key} names a program to download", "", _HINT, path)
    texts = [state[_PROVIDER_KEY] for state in states if _PROVIDER_KEY in state]
    if not texts and type_.startswith(_DYNAMIC) and not resource.get("external"):
        texts = [None]
    if any(not is_own_provider(text) for text in texts):
        what = "the state contains the code of a provider that is not part of the program"
        yield Problem(what, "", _HINT, path)


def _has_key(value: object, key: str) -> bool:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            if item.get(key):
                return True
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return False


def is_own_provider(text: object) -> bool:
    """Return True if ``text`` pickles a provider of this program. The text is not unpickled."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return False
    try:
        pickled = base64.b64decode(text, validate=True)
        steps = [
            (operation.name, argument)
            for operation, argument, _ in pickletools.genops(pickled)
            if operation.name not in _WITHOUT_EFFECT
        ]
    except (binascii.Error, ValueError, IndexError, OverflowError, struct.error):
        return False
    provider = tuple(argument for _, argument in steps[:2])
    return [name for name, _ in steps] == _CALL and provider in _OWN_PROVIDERS
