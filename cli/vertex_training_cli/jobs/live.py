"""The curve of a job while it trains: one line below its log, on a terminal alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from vertex_training.errors import OperatorError
from vertex_training_cli.console import plain
from vertex_training_cli.jobs import compare
from vertex_training_cli.jobs.metrics import MetricsReader

if TYPE_CHECKING:
    from rich.console import Console

    from vertex_training.customjob.google.job_service import AnyJob
    from vertex_training_cli.jobs.service import Jobs

#: Seconds between two looks at a bucket of Google's, and at one on this machine.
_CLOUD_PAUSE: Final = 15.0
_LOCAL_PAUSE: Final = 1.0
#: Pauses are this many times as long as a look at least: long logs take a second to read.
_REST: Final = 10
#: Columns of a history, or TensorBoard scalars, that the line has, and characters of their names.
_CURVES: Final = 2
_NAME: Final = 24


def line(curves: Mapping[str, Sequence[float]]) -> str:
    """The newest values of the first curves; empty without any.

    >>> line({"loss": [1.0, 0.5], "accuracy": [0.1, 0.9]})
    'loss █▁ 1 → 0.5   accuracy ▁█ 0.1 → 0.9'
    """
    chosen = list(curves.items())[:_CURVES]
    return "   ".join(
        f"{plain(name)[:_NAME]} {compare.curves([values])[0]}" for name, values in chosen
    )


@contextmanager
def curve_of(jobs: Jobs, chosen: Sequence[AnyJob], waiting: str = "") -> Iterator[Console | None]:
    """While this lasts, show the curve of the first job that has one on the terminal.

    The console to print to meanwhile; None if this is no terminal. ``waiting`` stands there until
    a job wrote one. What cannot be read is no error: the
    command that shows the line goes on.
    """
    from rich.console import Console
    from rich.text import Text

    out, ended = Console(stderr=True, highlight=False), threading.Event()
    if not out.is_terminal:
        yield None
        return
    with out.status(Text(waiting)) as status:

        def show(text: str) -> None:
            status.update(Text(text))

        watch = threading.Thread(target=_watch, args=(jobs, chosen, show, ended), daemon=True)
        watch.start()
        try:
            yield out
        finally:
            ended.set()


def _watch(
    jobs: Jobs, chosen: Sequence[AnyJob], show: Callable[[str], None], ended: threading.Event
) -> None:
    reader = MetricsReader(jobs.ref.project, lambda _text: None)
    shortest = pause = _LOCAL_PAUSE if jobs.ref.is_local else _CLOUD_PAUSE
    while not ended.wait(pause):
        began = time.monotonic()
        for job in chosen:
            try:
                text = line(reader.curves(job))
            except OperatorError:
                continue
            if text:
                show(text)
                break
        pause = max(shortest, _REST * (time.monotonic() - began))
