"""``vt jobs compare --html``: jobs side by side with plots, as one file without scripts. Pure.

Names and numbers come from buckets that jobs write to, so every text is escaped by the template
engine, and the page's policy lets a browser load nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import jinja2

from vertex_training_cli.console import plain
from vertex_training_cli.jobs import compare, trials
from vertex_training_cli.jobs.compare import Compared

#: A plot, in units of its own; the page scales it.
WIDTH, HEIGHT = 480, 200
#: Points of a line: a plot has no more places.
POINTS: Final = 480
#: Characters of a name or value that are shown.
LONGEST: Final = 160
#: Colours of jobs, also told apart by those who see few colours (Okabe and Ito, 2008), and dashes.
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#767676")
DASHES: Final = ("", "6 3", "2 3", "8 3 2 3")


@dataclass(frozen=True, slots=True)
class Curve:
    """One job's curve: pieces between values that are no numbers, ``x,y x,y …``."""

    label: str
    colour: str
    dash: str
    pieces: tuple[str, ...]
    last: str


@dataclass(frozen=True, slots=True)
class Plot:
    """One metric of all jobs, on one scale."""

    title: str
    low: str
    high: str
    steps: int
    lines: tuple[Curve, ...]


def render(jobs: Sequence[Compared]) -> str:
    """The page."""
    heads, rows = compare.table([replace(each, curves={}) for each in jobs])
    return _template().render(
        heads=heads, rows=rows, plots=plots(jobs), width=WIDTH, height=HEIGHT, cut=cut
    )


def cut(text: str) -> str:
    """``text`` on one line, without characters that hide or turn others."""
    shown = plain(text)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def plots(jobs: Sequence[Compared]) -> list[Plot]:
    """A plot for each curve that a job has."""
    names = dict.fromkeys(name for each in jobs for name in each.curves)
    return [_plot(name, jobs) for name in names]


def _plot(name: str, jobs: Sequence[Compared]) -> Plot:
    series = [(number, each, each.curves.get(name, ())) for number, each in enumerate(jobs)]
    finite = [value for *_, values in series for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    steps = max((len(values) for *_, values in series), default=0)
    lines = [
        Curve(
            label=f"{each.job} {each.run}".strip(),
            colour=COLOURS[number % len(COLOURS)],
            dash=DASHES[number // len(COLOURS) % len(DASHES)],
            pieces=tuple(_pieces(values, steps, low, high)),
            last=trials.shown(values[-1]),
        )
        for number, each, values in series
        if values
    ]
    return Plot(name, trials.shown(low), trials.shown(high), steps, tuple(lines))


def _pieces(values: Sequence[float], steps: int, low: float, high: float) -> list[str]:
    count = min(len(values), POINTS)
    pieces: list[list[str]] = [[]]
    for number in range(count):
        at = number * (len(values) - 1) // max(count - 1, 1)
        value = values[at]
        if not math.isfinite(value):
            pieces.append([])
            continue
        share = compare.share_of(value, low, high, flat=0.5)
        x, y = WIDTH * at / max(steps - 1, 1), HEIGHT * (1 - share)
        pieces[-1].append(f"{x:.1f},{y:.1f}")
    # A point alone is a line of no length, which round ends make a dot.
    return [" ".join(piece if len(piece) > 1 else piece * 2) for piece in pieces if piece]


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vertex_training_cli.jobs", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")
