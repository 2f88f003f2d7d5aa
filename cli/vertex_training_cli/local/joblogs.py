"""``vt local logs``: finds a job by id or name, and prints or follows the log of a replica.

The log of a tuning job is that of its trials, each in turn or one of them.
"""

from __future__ import annotations

import codecs
import re
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.runner.gang.cluster import PRIMARY
from localgcp.runner.joblog import log_path
from localgcp.tuning.records import TrialRecord, TuningRecord, TuningTable
from localgcp.vertex.records import JobTable
from vertex_training_cli.console import plain_lines
from vertex_training_cli.local.commands import private_files
from vertex_training_cli.local.results import (
    JobRecords,
    LocalJob,
    is_named,
    job_ids_named,
    log_file,
)

_POLL_SECONDS: Final = 0.2
#: Form of a trial's name, which begins with the name of its tuning job.
_TRIAL_NAME: Final = re.compile(r"(?P<tuning>.+)-trial-(?P<number>\d+)", re.DOTALL)


def logs(
    job: Annotated[
        str | None,
        typer.Argument(help="Job id, display name or name in the stack. Default: the newest job."),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Continue to print new lines until the job has ended."),
    ] = False,
    replica: Annotated[str, typer.Option(help="Replica whose log is printed.")] = PRIMARY,
    trial: Annotated[
        str | None, typer.Option(help="Trial of a tuning job. Default: all, one after the other.")
    ] = None,
) -> None:
    """Print the log of a replica of a job, or of the trials of a tuning job.

    Example: `vt local logs titanic-search --trial 3`.

    Exit code: 0 even if the job failed, 1 if the job, trial or log does not exist.
    """
    with private_files():
        show(Home.find(), job, replica, follow=follow, trial=trial)


def find_job(
    jobs: Sequence[LocalJob],
    wanted: str | None,
    in_stack: Collection[str],
    unnamed: Collection[str] = (),
) -> LocalJob:
    """Return the newest job with this id, name or display name, or whose id is in ``in_stack``.

    ``jobs`` are newest first; ``wanted`` None takes the first. Raises LocalCloudError if there is
    none, which names all but those with ids of ``unnamed``.
    """
    for job in jobs:
        if wanted is None or is_named(job, wanted) or job.job_id in in_stack:
            return job
    if not jobs:
        raise LocalCloudError(
            "the local cloud has no jobs.", "submit the jobs of the stack by `vt local up`."
        )
    names = {job.display_name for job in jobs if job.job_id not in unnamed}
    known = ", ".join(sorted(names))
    raise LocalCloudError(f"job {wanted!r} does not exist.", f"choose one of: {known}.")


def show(
    home: Home, wanted: str | None, replica: str, *, follow: bool, trial: str | None = None
) -> None:
    """Print the log to stdout; with ``follow`` until the job has ended.

    Raises LocalCloudError if there is no such job, trial or log, or no trial was chosen to follow.
    """
    if "/" in replica or replica.startswith("."):
        raise LocalCloudError(
            f"{replica!r} is not the name of a replica.", "write a name such as workerpool0-0."
        )
    shown, trial = _find(home, wanted, trial)
    if not isinstance(shown, TuningRecord):
        if trial:
            raise LocalCloudError(f"job {shown.display_name} has no trials.", "omit --trial.")
        _show_one(home, shown, replica, follow=follow)
        return
    jobs, every = JobTable(home.database), TuningTable(home.database).trials(shown.job_id)
    if trial is None:
        _show_all(home, shown, every, replica, follow=follow)
        return
    job = next((jobs.get(row.job_id) for row in every if str(row.number) == trial), None)
    if job is None:
        known = ", ".join(str(row.number) for row in every)
        raise LocalCloudError(
            f"tuning job {shown.display_name} has no trial {trial!r}.",
            f"choose one of: {known or 'none yet'}.",
        )
    _show_one(home, job, replica, follow=follow)


def _find(home: Home, wanted: str | None, trial: str | None) -> tuple[LocalJob, str | None]:
    """Return the job or tuning job that the arguments name, and the trial if they name one."""
    if not home.database.exists():
        return find_job([], wanted, []), None  # raises
    every, table = JobRecords(home).list(), TuningTable(home.database)
    tunings = [job for job in every if isinstance(job, TuningRecord)]
    if not wanted:
        every = tunings if trial else [job for job in every if not isinstance(job, TuningRecord)]
    trials = {row.job_id for job in tunings for row in table.trials(job.job_id)}
    try:
        in_stack = job_ids_named(home, wanted) if wanted else []
        return find_job(every, wanted, in_stack, trials), trial
    except LocalCloudError:
        # The name in the stack may be another than the display name, which trials are named after.
        named = _TRIAL_NAME.fullmatch(wanted or "")
        ids = job_ids_named(home, named["tuning"]) if named else []
        for job in tunings:
            if named and job.job_id in ids:
                return job, named["number"]
        raise


def _show_all(
    home: Home,
    tuning: TuningRecord,
    trials: Sequence[TrialRecord],
    replica: str,
    *,
    follow: bool,
) -> None:
    """Print the log of each trial in turn. Each line starts with its trial."""
    if follow:
        going = ", ".join(str(trial.number) for trial in trials if not trial.state.over)
        raise LocalCloudError(
            "--follow can print the log of only one trial.",
            f"choose one with --trial: {going or 'no trial is running'}.",
        )
    empty = True
    for trial in trials:
        path = log_path(home, trial.job_id, replica)
        if not path.exists():
            continue
        empty = False
        for line in plain_lines(path.read_text(encoding="utf-8", errors="replace")).splitlines():
            print(f"trial {trial.number} | {line}", flush=True)
    if empty:
        name = f"tuning job {tuning.display_name} ({tuning.state.word})"
        raise LocalCloudError(f"no trial of {name} has a log of replica {replica}.")


def _show_one(home: Home, job: LocalJob, replica: str, *, follow: bool) -> None:
    """Print the log of a replica, or of a task on Batch."""
    records, path = JobRecords(home), log_file(home, job, replica)

    def state() -> tuple[str, bool]:
        current = records.get(job.job_id)
        return (current.state.word, current.state.terminal) if current else ("deleted", True)

    _stream(path, f"job {job.display_name}", path.stem, state, follow=follow)


def _stream(
    path: Path,
    name: str,
    replica: str,
    state: Callable[[], tuple[str, bool]],
    *,
    follow: bool,
) -> None:
    """Print a log; with ``follow`` until ``state`` reports the end of the job."""
    offset = 0
    # A look may end in the middle of a character; the next one brings the rest.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while True:
        now, ended = state()
        offset = _print_from(path, offset, decoder, final=ended or not follow)
        if ended or not follow:
            break
        time.sleep(_POLL_SECONDS)
    if not path.exists():
        written = ", ".join(sorted(file.stem for file in path.parent.glob("*.log")))
        raise LocalCloudError(
            f"job {name} ({now}) has no log of replica {replica}"
            + (f". Existing logs: {written}." if written else " yet.")
        )


def _print_from(path: Path, offset: int, decoder: codecs.IncrementalDecoder, *, final: bool) -> int:
    try:
        with path.open("rb") as log:
            log.seek(offset)
            data = log.read()
    except FileNotFoundError:
        return offset
    sys.stdout.write(plain_lines(decoder.decode(data, final)))
    sys.stdout.flush()
    return offset + len(data)
