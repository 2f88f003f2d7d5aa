"""Command line of ``vt preflight``, and the table of its checks, which run in parallel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Final, Literal

import typer

from vertex_training.errors import CommandError
from vertex_training_cli.engine import stacks
from vertex_training_cli.options import ReportFile, write_reports
from vertex_training_cli.preflight import (
    context,
    names,
    networks,
    organization_policies,
    quotas,
    rights,
)
from vertex_training_cli.preflight.context import (
    MALFORMED,
    WRITERS,
    Answer,
    Preflight,
    PreflightContext,
    Verdict,
    as_json,
    markdown,
    question,
)

#: Exit code if Google Cloud would refuse a deployment.
REFUSED: Final = 3


def preflight(
    stack: Annotated[
        str, typer.Option("--stack", "-s", help="Stack to check (Pulumi.STACK.yaml).")
    ],
    account: Annotated[
        str, typer.Option("--as", help="Impersonate this service account.", metavar="ACCOUNT")
    ] = "",
    format_: Annotated[
        Literal["text", "markdown", "json"],
        typer.Option(
            "--format", "-f", metavar="FORMAT", help="Output format: text, markdown or json."
        ),
    ] = "text",
    output: ReportFile = None,
) -> None:
    """Check whether Google Cloud would refuse the stack's deployment. The command changes nothing.

    The command checks the project, billing, APIs, permissions, names and images. Each finding
    contains a fix. If a check was not possible, the report lists the check with the missing
    permission.

    Exit code: 0 no refusal expected, 1 no check was possible, 3 a deployment would be refused.
    """
    if output is not None and output.name in ("", ".."):
        raise CommandError(f"--output {str(output)!r} is not the name of a file.")
    ref = stacks.find(stack)
    preflight_context, unread = context.connect(ref, account)
    answers = (*unread, *check_all(preflight_context))
    calls = preflight_context.client.calls
    result = Preflight(stack, ref.project, account, answers, calls)
    print(WRITERS[format_](result), end="")
    if output is not None:
        write_reports(output, md=markdown(result), json=as_json(result))
    if len(result.of(Verdict.UNKNOWN)) == len(answers):
        raise CommandError("no check was possible.")
    raise typer.Exit(REFUSED if result.of(Verdict.REFUSED) else 0)


Part = Callable[[PreflightContext], Iterator[Answer]]
#: Name of each part of a preflight -> function with its checks.
PARTS: Final[Mapping[str, Part]] = {
    "project": rights.check_project,
    "rights": rights.check_permissions,
    "names": names.check_names,
    "images": names.check_images,
    "organization policies": organization_policies.check_policies,
    "quotas": quotas.check_quotas,
    "networks": networks.check_network,
    "reservations": quotas.check_reservations,
}
_AT_ONCE: Final = 8


def check_all(checked: PreflightContext) -> list[Answer]:
    """Return the answers of all parts, in the order of ``PARTS``."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = pool.map(lambda heading: _answers(heading, checked), PARTS)
        return [
            dataclasses.replace(answer, part=heading)
            for heading, answers in zip(PARTS, results, strict=True)
            for answer in answers
        ]


def _answers(heading: str, checked: PreflightContext) -> list[Answer]:
    answers = list[Answer]()
    try:
        for answer in PARTS[heading](checked):
            answers.append(answer)
    except MALFORMED as error:
        reason = f"a response has an unexpected form: {type(error).__name__}: {error}"
        answers.append(question(heading, "further checks of this part").unknown(reason))
    return answers
