"""Waits for jobs to end: with a moving picture and the end of the log on a terminal, else lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Final

from localgcp import lifecycle
from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.runner import substitutes
from vertex_training_cli.console import console, plain
from vertex_training_cli.engine.stack_state import StackJob
from vertex_training_cli.local.results import JobLookup, LocalJob, log_file

_POLL_SECONDS: Final = 0.25
_TAIL_LINES: Final = 8
_FAILED_TAIL_LINES: Final = 20
_TAIL_BYTES: Final = 16_000


def watch(home: Home, jobs: JobLookup, wanted: Sequence[StackJob]) -> None:
    """Return when all jobs ended (or their records are gone).

    Raises LocalCloudError if the server ends before they do.
    """
    if sys.stdout.isatty():
        _with_picture(home, jobs, wanted)
    else:
        _with_lines(home, jobs, wanted)
    for job in wanted:
        record = jobs.get(job.job_id)
        if record and record.error_message:
            print(f"\nend of the log of {job.name}:")
            print("\n".join(tail(home, record, _FAILED_TAIL_LINES)))


def tail(home: Home, record: LocalJob, lines: int) -> list[str]:
    """The last lines of the first replica's log."""
    try:
        with log_file(home, record).open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - _TAIL_BYTES))
            written = [line.decode(errors="replace") for line in log]
    except FileNotFoundError:
        return []
    # A progress bar rewrites its line: only what would be left on a terminal is shown.
    return [plain(line.rstrip("\r\n").rpartition("\r")[2]) for line in written][-lines:]


def _live(home: Home, jobs: JobLookup, wanted: Sequence[StackJob]) -> list[tuple[str, LocalJob]]:
    found = [(job.name, record) for job in wanted if (record := jobs.get(job.job_id))]
    live = [(name, record) for name, record in found if not record.state.terminal]
    if live and lifecycle.running(home) is None:
        raise LocalCloudError(
            f"the local cloud ended while {len(live)} jobs had not.",
            "`vt local start` starts it again.",
        )
    return live


def _with_lines(home: Home, jobs: JobLookup, wanted: Sequence[StackJob]) -> None:
    shown: dict[str, str] = {}

    def show(name: str, record: LocalJob) -> None:
        if shown.get(name) != record.state:
            found = substitutes.read(home, record.job_id) if record.state.terminal else []
            state = substitutes.marked(record.state.word, found)
            print(f"job {name} ({record.job_id}): {state}", flush=True)
            shown[name] = record.state

    while live := _live(home, jobs, wanted):
        for name, record in live:
            show(name, record)
        time.sleep(_POLL_SECONDS)
    for job in wanted:
        if record := jobs.get(job.job_id):
            show(job.name, record)


def _with_picture(home: Home, jobs: JobLookup, wanted: Sequence[StackJob]) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    began = time.monotonic()
    spinners = {job.name: Spinner("dots") for job in wanted}
    with Live(console=console(), transient=True, refresh_per_second=8) as picture:
        while live := _live(home, jobs, wanted):
            seconds = int(time.monotonic() - began)
            parts: list[Spinner | Text] = []
            for name, record in live:
                title = f"{name}  {record.state.word}  {seconds // 60}:{seconds % 60:02}"
                spinners[name].update(text=Text(title, style="bold"))
                lines = "\n".join(tail(home, record, _TAIL_LINES))
                text = Text(lines, style="dim", no_wrap=True, overflow="ellipsis")
                parts += [spinners[name], text]
            picture.update(Group(*parts))
            time.sleep(_POLL_SECONDS)
