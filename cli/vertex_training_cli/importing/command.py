"""The command line of ``vt import``."""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from google.protobuf.json_format import MessageToDict

from localgcp.home import Home
from vertex_training import stack as stack_settings
from vertex_training.customjob.kinds import BATCH_JOB, kind_of_name
from vertex_training.customjob.protocol.ports import (
    JOB_LABEL,
    JOB_LABELS,
    REQUEST_ID_LABEL,
    own_labels,
)
from vertex_training.errors import CheckUnavailableError, CommandError
from vertex_training.secret_rules.redaction import masked, redacted
from vertex_training.settings import stack_files
from vertex_training_cli.check import checking
from vertex_training_cli.check.command import fix, judge_of
from vertex_training_cli.check.report import FileReport, LintFinding, text_lines
from vertex_training_cli.console import plain, print_line
from vertex_training_cli.engine import paths, stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.failures import FAILED, exit_codes
from vertex_training_cli.importing import imported, recorded, sources
from vertex_training_cli.importing.proposal import Proposal, open_names, propose, rehearsal
from vertex_training_cli.importing.sources import SourceContents
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.options import StackOfJob, Write

#: Levels of findings about this machine and about placeholders: (rule, level) -> level in a report.
LEVELS: Final = {(checking.LOCAL_RULE, "error"): "warning", ("placeholder", "warning"): "note"}
LostState = Annotated[
    bool,
    typer.Option("--state", help="Find the stack's resources that are missing from its state."),
]
Command = Annotated[
    str,
    typer.Option(
        "--run",
        help="Run this command or notebook, and import the jobs that it submits.",
        metavar="COMMAND",
    ),
]
NoIsolation = Annotated[
    bool,
    typer.Option(
        "--no-isolation", help="With --run: give the command access to the network of this machine."
    ),
]
SelectedJob = Annotated[
    str,
    typer.Option(
        "--job",
        help="Name of one job of SOURCE. Without SOURCE: id of an existing job.",
    ),
]


def import_(
    source: Annotated[
        Path | None,
        typer.Argument(
            help="File to import from: YAML, .py, .ipynb, .sh, .md or Makefile.", metavar="SOURCE"
        ),
    ] = None,
    job: SelectedJob = "",
    run: Command = "",
    no_isolation: NoIsolation = False,
    state: LostState = False,
    stack: StackOfJob = "local",
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the job in the stack.")] = "",
    write: Write = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Correct unambiguous mistakes, like `vt check --fix`.")
    ] = False,
    up: Annotated[
        bool,
        typer.Option("--up", help="Write the files, then run the stack's jobs with `vt local up`."),
    ] = False,
) -> None:
    """Import the jobs of a file into a stack: job file, package, account and stack file entry.

    SOURCE is read and never run. SOURCE contains requests of Vertex AI in YAML or JSON (also in
    workflows, templates and CI files), gcloud commands (in a script, Makefile, notebook or Markdown
    page), or Python code that uses the official client. Only literals are imported. Every other
    value is replaced by a `<NAME>`, and reported with its line. The command shows a diff. It writes
    files only with --write.

    --run COMMAND runs your own code without a network. Requests of Google's Python clients, gcloud
    and gsutil are recorded. Other requests fail, and no job starts. --run needs Linux namespaces.
    --no-isolation needs no namespaces, but requests of other programs reach Google Cloud with your
    credentials.

    --state searches Google Cloud for resources of the stack that are missing from the state. With
    --write, the command imports these resources, and the exit code is that of `pulumi import`.

    Exit code: 0 no mistakes, 1 mistakes, or (with --up) a job that did not succeed, 2 SOURCE cannot
    be read.

    Examples: `vt import train.ipynb --stack dev --write`, `vt import --job 1234567890 --stack dev`.
    """
    if state:
        raise typer.Exit(_import_lost_state(stack, write=write))
    # Handle these signals like Ctrl-C, so that temporary folders are removed.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    proposal = _proposal(source, job, run, stack, name, isolated=not no_isolation)
    if up:
        _ensure_local(proposal)
    if fix:
        _apply_fixes(proposal)
    offer(proposal, write=write or up, only_right=up)
    if up:
        _bring_up(proposal)


def _import_lost_state(stack: str, *, write: bool) -> int:
    from vertex_training_cli.up import lost_state

    ref = stacks.find(stack)
    pulumi = PulumiCli(ref.root, ref.environment(print_line))
    return lost_state.take_over(ref, pulumi, print_line, write=write)


def _apply_fixes(proposal: Proposal) -> None:
    for job, file in zip(proposal.jobs, proposal.job_files, strict=True):
        fixed = fix(file, str(proposal.files[file]).encode(), judge_of(file))
        proposal.files[file] = fixed.after.decode()
        if fixed.count:
            job.remarks.append(f"fixed mistakes of the source: {fixed.count}")


def offer(proposal: Proposal, *, write: bool, only_right: bool = False) -> None:
    """Show the diff and the mistakes of a proposal. With ``write``, write the files.

    Mistakes end the command with exit code 1. With ``only_right``, they also prevent the write.
    """
    for line in proposal.diff():  # The source is not trusted.
        print(masked(plain(line.rstrip("\r\n"))))
    reports = judge(proposal)
    wrong = any(report.count("error") for report in reports)
    written = write and not (only_right and wrong)
    if written:
        proposal.write()
    hint = "Fix the mistakes first." if write else "Add --write to write the files."
    _report(proposal, reports, hint="" if written else hint)
    if wrong:
        raise typer.Exit(1)


def _proposal(
    source: Path | None, job: str, run: str, stack: str, name: str, *, isolated: bool = True
) -> Proposal:
    if (source and run) or not (source or run or job):
        raise CommandError(
            "`vt import` requires exactly one source: a file, --job ID of an existing job, or "
            "--run COMMAND."
        )
    if not (run or isolated):
        raise CommandError("--no-isolation requires --run COMMAND.")
    root, settings = paths.root_of(Path.cwd()), None
    if root is not None:
        raw = stack_files.read_raw(stack_settings.SCHEMA, root, stack)
        settings = stack_settings.read_settings(raw, root)
    if not isolated:
        print_line(f"note: the command is not isolated: {recorded.NOT_ISOLATED}.")
    if run:
        contents = recorded.read(run, settings, isolated=isolated)
    elif source:
        contents = sources.read(source)
    elif root is None:
        raise CheckUnavailableError(
            "no Pulumi.yaml in this folder or above: a stack needs a Pulumi project"
        )
    else:
        contents = _of_job(job, stack, root)
    if job and (source or run):
        _choose(contents, job)
    if name:
        if len(contents.jobs) != 1:
            raise CommandError(
                f"--name requires a source with one job; this source has {len(contents.jobs)} jobs."
            )
        contents.jobs[0].name = imported.to_key(name)
    folder = source.parent if source else root or Path.cwd()
    return propose(contents, folder, root or Path.cwd(), stack if root else "", settings)


def _choose(contents: SourceContents, job: str) -> None:
    names = [candidate.name for candidate in contents.jobs]
    if job not in names:
        raise CommandError(f"the source has no job {job!r}.", f"choose one of: {', '.join(names)}")
    contents.jobs = [candidate for candidate in contents.jobs if candidate.name == job][:1]
    if (more := names.count(job) - 1) > 0:
        contents.remarks.append(
            f"the source has {more} more jobs named {job}, which are not imported"
        )
    if left := [name for name in names if name != job]:
        contents.remarks.append(f"other jobs of the source are not imported: {', '.join(left)}")


def _ensure_local(proposal: Proposal) -> None:
    if not proposal.is_local:
        if not proposal.stack:
            raise CommandError("--up requires a stack: no Pulumi.yaml in this folder or above.")
        raise CommandError(
            f"--up requires a stack of the local cloud; {proposal.stack} is a stack of "
            "Google Cloud.",
            "write the files with --write, have the change reviewed, then run `vt up "
            f"--stack {proposal.stack}`",
        )


def _bring_up(proposal: Proposal) -> None:
    from vertex_training_cli.local import commands
    from vertex_training_cli.local import up as local_up

    with exit_codes("import", FAILED), commands.private_files():
        home, names = Home.find(cwd=proposal.root), [job.name for job in proposal.jobs]
        raise typer.Exit(
            local_up.run(home, proposal.stack, wait=True, report=print_line, only=names)
        )


def _of_job(job: str, stack: str, root: Path) -> SourceContents:
    ref = stacks.find(stack, root)
    ref.connect_clients()
    jobs = Jobs(ref)
    job_message = jobs.find(job)
    if kind_of_name(job_message.name) is BATCH_JOB:
        raise CommandError(f"{imported.batch_remark(job_message.name)}.")
    own = own_labels(job_message.labels)
    message = recorded.whole_numbers(MessageToDict(type(job_message).pb(job_message)))
    labels, display_name = message.pop("labels", {}), message.pop("displayName", "job")
    if id_ := own.get(REQUEST_ID_LABEL):  # Each submission writes to a separate folder.
        message = json.loads(json.dumps(message).replace(id_, imported.REQUEST_ID))
    message["labels"] = {k: v for k, v in labels.items() if k not in JOB_LABELS}
    imported_job = imported.from_message(message, own.get(JOB_LABEL) or display_name)
    imported.name_by_request(imported_job)
    return sources.SourceContents([imported_job])


def judge(proposal: Proposal) -> list[FileReport]:
    """Return the findings of ``vt check --stack`` on the proposed files."""
    with rehearsal(proposal) as folder:
        copy = Path(folder)
        files = [str(copy / file) for file in proposal.job_files]
        if proposal.stack:
            reports = checking.check_in_stack(files, copy, proposal.stack)
        else:
            reports = [checking.check_without_stack(file) for file in files]
    return [_renamed(report, proposal) for report in reports]


def _renamed(report: FileReport, proposal: Proposal) -> FileReport:
    own = (*proposal.files, *proposal.named)
    files = [*own, *(path.name for path in proposal.root.glob("Pulumi*.yaml"))]
    name = next((file for file in files if report.file.endswith(f"/{file}")), report.file)
    findings = list[LintFinding]()
    for finding in report.findings:
        level = LEVELS.get((finding.rule, finding.level), finding.level)
        problem = dataclasses.replace(finding.problem, level=level)
        findings.append(dataclasses.replace(finding, file=name, problem=problem))
    return dataclasses.replace(report, file=name, findings=tuple(findings))


def _report(proposal: Proposal, reports: list[FileReport], *, hint: str) -> None:
    for remark in proposal.remarks:
        print_line(f"note: {redacted(plain(remark))}.")
    for job in proposal.jobs:
        names = open_names(job)
        opens = [f"replace these placeholders by values: {', '.join(names)}"] if names else []
        for remark in dict.fromkeys([*opens, *job.remarks, *map(str, job.notes)]):
            print_line(f"{job.name}: {redacted(plain(remark))}.")
    shortened = [report.without_notes() for report in reports]
    for line in text_lines(shortened, color=sys.stderr.isatty()):
        print_line(line)
    names = ", ".join(job.name for job in proposal.jobs)
    if not hint:
        following = f" Next: `vt up --stack {proposal.stack}`." if proposal.stack else ""
        print_line(f"Written: {names}.{following}")
    else:
        print_line(f"Not written: {names}. {hint}")
