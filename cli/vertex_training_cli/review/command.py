"""Command line of ``vt review``. The exit code is the outcome; see ``--help``."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vertex_training.errors import CommandError, ConfigError
from vertex_training.settings import project_files
from vertex_training_cli.console import print_line
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.options import project_root
from vertex_training_cli.process import print_utf8

if TYPE_CHECKING:
    from vertex_training.errors import Problem
    from vertex_training_cli.engine.plan import Plan
    from vertex_training_cli.engine.stacks import StackRef
    from vertex_training_cli.review.report import ReviewReport

#: A digest, or its first characters.
DIGEST: Final = re.compile(r"[0-9a-f]{8,64}\Z")
#: Maximum length of the preview's first error on standard error. The report has the full error.
MAX_ERROR: Final = 500


class ReportFormat(StrEnum):
    """Output formats of a report."""

    MD = "md"
    HTML = "html"
    JSON = "json"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class PreviewOptions:
    """Options of the preview for a report."""

    policy_packs: tuple[str, ...] = ()
    policy_levels: Path | None = None
    offline: bool = False
    refresh: bool = False
    save_plan: Path | None = None


Stack = Annotated[str, typer.Option("--stack", "-s", help="The stack to review.")]
FormatOption = Annotated[
    ReportFormat,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="Output format: md, html, json, or plan (input of `vt github comment`).",
    ),
]
Output = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        help="Write the report to this file. Repeatable: the suffix of each file sets its format.",
        metavar="FILE",
    ),
]
PolicyPack = Annotated[
    list[str] | None,
    typer.Option("--policy-pack", help="Policy pack that checks the plan. Repeatable."),
]
PolicyLevels = Annotated[
    Path | None,
    typer.Option(
        "--policy-levels",
        help="JSON file with policy levels and settings, which override the stack file.",
        metavar="FILE",
    ),
]
Expect = Annotated[
    str,
    typer.Option("--expect", help="Digest of the approved plan. Exit code 5 if the plan differs."),
]
Offline = Annotated[
    bool,
    typer.Option("--offline", help="Preview against an empty state, without network or account."),
]
Refresh = Annotated[
    bool,
    typer.Option(
        "--refresh",
        help="Refresh the state before the preview, so that the plan undoes drift.",
    ),
]
PreflightReport = Annotated[
    Path | None,
    typer.Option(
        "--preflight",
        help="Include the summary of this `vt preflight` report (JSON).",
        metavar="FILE",
        dir_okay=False,
        exists=True,
    ),
]
SavePlan = Annotated[
    Path | None,
    typer.Option(
        "--save-plan", help="Write the engine's plan to this file, for `vt up --plan FILE`."
    ),
]


def review(
    stack: Stack,
    output_format: FormatOption = ReportFormat.MD,
    output: Output = None,
    policy_pack: PolicyPack = None,
    policy_levels: PolicyLevels = None,
    expect: Expect = "",
    offline: Offline = False,
    refresh: Refresh = False,
    save_plan: SavePlan = None,
    preflight: PreflightReport = None,
) -> None:
    """Preview a stack and report its jobs, costs, IAM grants, public access and lost data.

    Example: `vt review --stack dev -o plan.md -o plan.html`.

    Exit code: 0 no objection, 1 the preview failed, an image is missing, or a running job would
    move to another stack or be replaced by an identical request, 2 wrong usage or no stack to
    review, 3 a policy forbids the change, or a deleted protected resource would be created again
    without its data, 4 the change exceeds a limit of the environment, 5 the plan differs from
    --expect. Except with exit code 2, the command writes a report.
    """
    print_utf8()
    formats = _formats(output or [], output_format)
    packs = tuple(policy_pack or ())
    how = PreviewOptions(packs, policy_levels, offline, refresh, save_plan)
    report, plan = _review(stack, expect, how)
    if preflight:
        report = dataclasses.replace(report, preflight=_summary(preflight, stack))
    for file, its_format in formats.items():
        file.write_text(_render(report, plan, its_format), encoding="utf-8")
    if output:
        from vertex_training_cli.review.headline import verdict

        files = ", ".join(map(str, formats))
        _log(f"{stack}: {verdict(report)} Plan {report.digest[:12]}, report in {files}")
    else:
        print(_render(report, plan, output_format), end="")
    if plan.errors and not plan.succeeded:
        from vertex_training_cli.review.parts import cut

        _log(f"{stack}: the preview failed: {cut(plan.errors[0].message, MAX_ERROR)}")
    raise typer.Exit(int(report.outcome))


def _summary(file: Path, stack: str) -> str:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        summary, about = str(document["summary"]), str(document["stack"])
    except (ValueError, KeyError, TypeError):
        text = f"--preflight {file} is not a report of `vt preflight`."
        hint = f"run `vt preflight --stack {stack} -o FILE`, which writes FILE.json."
        raise CommandError(text, hint) from None
    if about != stack:
        raise CommandError(f"--preflight {file} is a report on stack {about}, not on {stack}.")
    return summary


def _log(text: str) -> None:
    print_line(f"vt review: {text}")


def _formats(files: list[Path], only: ReportFormat) -> dict[Path, ReportFormat]:
    if len(files) == 1:
        return {files[0]: only}
    endings = [output_format.value for output_format in ReportFormat]
    for file in files:
        if file.suffix[1:] not in endings:
            names = ", .".join(endings)
            raise CommandError(f"-o {file}: with several -o options, the name must end in .{names}")
    return {file: ReportFormat(file.suffix[1:]) for file in files}


def _review(stack: str, expect: str, how: PreviewOptions) -> tuple[ReviewReport, Plan]:
    root = project_root()
    project_files.file_of(root, stack)
    if how.policy_levels and not how.policy_packs:
        raise CommandError("--policy-levels requires --policy-pack.", "add --policy-pack.")
    if expect and not DIGEST.match(expect):
        raise CommandError(
            f"--expect must be 8 to 64 hex digits of a plan's digest (got {expect[:80]})"
        )
    ref = stacks.find_unchecked(root, stack)
    plan, source, unknown = _plan(ref, how)
    from vertex_training_cli.jobs import deployed, observe
    from vertex_training_cli.review import jobs, report  # loaded during the preview

    is_offline = how.offline or "offline" in source
    observed = observe.observe_jobs(ref, plan, offline=is_offline)
    problems = unknown if plan.succeeded else [*unknown, *_problems(root, stack)]
    result = report.build(
        plan, source=source, expected=expect, problems=problems, observed=observed
    )
    result = report.with_problems(result, jobs.same_requests(result.jobs))
    if not is_offline:
        pulumi = PulumiCli(root, ref.preview_target(offline=False).env)
        moved = deployed.find_moved_jobs(ref, deployed.planned_from(plan), pulumi)
        result = report.with_problems(result, moved)
    return _with_images(result, ref, offline=is_offline), plan


def _with_images(report: ReviewReport, ref: StackRef, *, offline: bool) -> ReviewReport:
    from vertex_training_cli.images import lookup
    from vertex_training_cli.review.report import with_problems

    jobs: dict[str, list[str]] = {}
    for uri, user in report.new_images:
        jobs.setdefault(uri, []).append(user)
    shown = [image.uri for image in (*report.images, *report.other_images)]
    origins = lookup.for_review(ref, jobs, shown, offline=offline)
    unseen, known = tuple(origins.unseen), origins.origins
    report = dataclasses.replace(report, origins=known, unseen_images=unseen)
    return with_problems(report, origins.problems)


def _plan(ref: StackRef, how: PreviewOptions) -> tuple[Plan, str, list[Problem]]:
    from vertex_training_cli import policy_levels
    from vertex_training_cli.engine.events import make_plan

    target = ref.preview_target(offline=how.offline, refresh=how.refresh)
    save = how.save_plan.absolute() if how.save_plan else None
    config = policy_levels.policy_config(ref.root, ref.stack, how.policy_levels)
    threading.Thread(target=_load_the_rest, daemon=True).start()
    with _progress(ref.stack) as on_event, tempfile.TemporaryDirectory() as folder:
        preview = make_plan(
            PulumiCli(ref.root, target.env), ref.stack,
            policy_options=policy_levels.options(how.policy_packs, config, Path(folder)),
            refresh=how.refresh, save_plan=save, on_event=on_event,
        )  # fmt: skip
    plan, unknown = policy_levels.with_levels(preview, config)
    return plan, target.source, unknown


def _load_the_rest() -> None:
    """Load the modules of a report while the engine runs, to save time."""
    from vertex_training_cli.review import formats

    formats.template("comment.md.j2")


@contextmanager
def _progress(stack: str) -> Iterator[Callable[[int], None]]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"previewing {stack}") as status:
        yield lambda count: status.update(f"previewing {stack}: {count} events")


def _problems(root: Path, stack: str) -> list[Problem]:
    """Return the problems in the stack's files; empty if the preview failed for other reasons."""
    from vertex_training.stack import load
    from vertex_training_cli.check.checking import shown_from

    try:
        loaded = load(root, stack)
        results = loaded.check_jobs(shown_from(root))
    except ConfigError as failed:
        return list(failed.problems)
    except OSError:
        return []  # The program has reported the unreadable file.
    problems = [problem for result in results.values() for problem in result.errors]
    return [*problems, *loaded.exceeded_limits(results)]


def _render(report: ReviewReport, plan: Plan, output_format: ReportFormat) -> str:
    if output_format is ReportFormat.PLAN:
        from vertex_training_cli.engine import plan_file

        return plan_file.write(plan, report.source, report.problems)
    from vertex_training_cli.review.formats import to_html, to_json, to_markdown

    return {"md": to_markdown, "html": to_html, "json": to_json}[output_format](report)
