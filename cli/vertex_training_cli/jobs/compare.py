"""``vt jobs compare``: jobs side by side. What is equal in all is left out. Pure.

As a page, it is one file with plots and without scripts. Names and numbers come from buckets that
jobs write to, so every text is escaped by the template engine, and the page's policy lets a browser
load nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from vertex_training.catalog import costs
from vertex_training_cli.console import plain
from vertex_training_cli.engine.values import redact
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.metrics import MetricsReader
from vertex_training_cli.jobs.service import kind_of

if TYPE_CHECKING:
    from jinja2 import Template

    from vertex_training.customjob.google.job_service import AnyJob

#: From low to high.
_BARS: Final = "▁▂▃▄▅▆▇█"
#: Cells of a curve.
_WIDTH: Final = 24


@dataclass(frozen=True, slots=True)
class Compared:
    """One of the jobs."""

    job: str
    run: str
    id: str
    state: str
    duration: str
    cost: str
    """At list prices, for as long as it ran."""
    parameters: Mapping[str, str]
    metrics: Mapping[str, float]
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return asdict(self)


def compared(job: AnyJob, region: str, reader: MetricsReader) -> Compared:
    """What is known of a job, with what it wrote."""
    now, message = datetime.now(UTC), view.message(job)
    row = view.row(job, now)
    return Compared(
        job=row["job"],
        run=row["run"],
        id=row["id"],
        state=row["state"],
        duration=row["duration"],
        cost=_cost(job, message, region, now),
        parameters=parameters(kind_of(job).trial_of(message)),
        metrics=reader.metrics(job),
        curves=reader.curves(job),
    )


def table(jobs: Sequence[Compared]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Heads and rows: a column for each job."""
    heads = ("", *(f"{each.job} {each.run}".strip() for each in jobs))
    rows = [
        (key, *(str(getattr(each, key)) for each in jobs))
        for key in ("id", "state", "duration", "cost")
    ]
    names = dict.fromkeys(name for each in jobs for name in each.parameters)
    for name in names:
        cells = [each.parameters.get(name, "") for each in jobs]
        if len(set(cells)) > 1:
            rows.append((name, *cells))
    for name in dict.fromkeys(name for each in jobs for name in each.metrics):
        rows.append((name, *(view.shown(each.metrics.get(name)) for each in jobs)))
    for name in dict.fromkeys(name for each in jobs for name in each.curves):
        series = [each.curves.get(name, ()) for each in jobs]
        rows.append((f"{name} (curve)", *curves(series)))
    return heads, rows


def parameters(job: Mapping[str, Any]) -> dict[str, str]:
    """Arguments and machines of a CustomJob: ``--epochs`` -> ``3``; the first pool's count."""
    found: dict[str, str] = {}
    pools = job.get("jobSpec", {}).get("workerPoolSpecs", [])
    for number, pool in enumerate(pools):
        machine = pool.get("machineSpec", {})
        text = f"{pool.get('replicaCount', 1)} x {machine.get('machineType', '')}"
        if machine.get("acceleratorCount"):
            text += f" + {machine['acceleratorCount']} x {machine.get('acceleratorType')}"
        found[f"pool {number}"] = text
        task = pool.get("pythonPackageSpec") or pool.get("containerSpec") or {}
        found |= {key: value for key, value in _flags(task).items() if key not in found}
        code = task.get("packageUris") or [task.get("imageUri", "")]
        found.setdefault("code", " ".join(str(uri).rpartition("/")[2] for uri in code))
    return redact(found)


def curves(series: Sequence[Sequence[float]]) -> list[str]:
    """A line of bars for each series, all on one scale, with the first and the last value.

    >>> curves([[0.0, 1.0], [0.5]])
    ['▁█ 0 → 1', '▄ 0.5']
    """
    finite = [value for each in series for value in each if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    return [_curve(each, low, high) for each in series]


def _curve(values: Sequence[float], low: float, high: float) -> str:
    if not values:
        return ""
    count = min(len(values), _WIDTH)
    chosen = [values[i * (len(values) - 1) // max(count - 1, 1)] for i in range(count)]
    ends = [view.shown(values[0])]
    ends += [view.shown(values[-1])] if len(values) > 1 else []
    return f"{''.join(_bar(value, low, high) for value in chosen)} {' → '.join(ends)}"


def _bar(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "?"
    return _BARS[int(share_of(value, low, high, flat=0.0) * (len(_BARS) - 1))]


def share_of(value: float, low: float, high: float, *, flat: float) -> float:
    """How far up a scale a value is, 0 to 1; ``flat`` on a scale of one value."""
    span = high / 2 - low / 2  # halves: the whole may be larger than any float
    return (value / 2 - low / 2) / span if span > 0 else flat


def _flags(task: Mapping[str, Any]) -> dict[str, str]:
    """Values of a task's arguments; a word that belongs to none stands for itself."""
    words, found = [str(word) for word in task.get("args", [])], dict[str, str]()
    index = 0
    while index < len(words):
        flag, equals, value = words[index].partition("=")
        index += 1
        if not equals and index < len(words) and not words[index].startswith("-"):
            value, index = words[index], index + 1
        found[flag] = value
    return found


def _cost(job: AnyJob, message: Mapping[str, Any], region: str, now: datetime) -> str:
    began: Any = job.start_time
    if not began or view.is_tuning(job):
        return ""
    ended: Any = job.end_time or now
    hourly = costs.of_job(message, region, kind_of(job).backend).hourly
    return "" if hourly is None else costs.usd(hourly * (ended - began).total_seconds() / 3600)


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


def render_page(jobs: Sequence[Compared]) -> str:
    """The page."""
    heads, rows = table([replace(each, curves={}) for each in jobs])
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
            last=view.shown(values[-1]),
        )
        for number, each, values in series
        if values
    ]
    return Plot(name, view.shown(low), view.shown(high), steps, tuple(lines))


def _pieces(values: Sequence[float], steps: int, low: float, high: float) -> list[str]:
    count = min(len(values), POINTS)
    pieces: list[list[str]] = [[]]
    for number in range(count):
        at = number * (len(values) - 1) // max(count - 1, 1)
        value = values[at]
        if not math.isfinite(value):
            pieces.append([])
            continue
        share = share_of(value, low, high, flat=0.5)
        x, y = WIDTH * at / max(steps - 1, 1), HEIGHT * (1 - share)
        pieces[-1].append(f"{x:.1f},{y:.1f}")
    # A point alone is a line of no length, which round ends make a dot.
    return [" ".join(piece if len(piece) > 1 else piece * 2) for piece in pieces if piece]


@functools.cache
def _template() -> Template:
    import jinja2  # takes longer than all else of a comparison

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vertex_training_cli.jobs", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")
