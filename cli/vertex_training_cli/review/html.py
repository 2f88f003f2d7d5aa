"""The report as one HTML page: no script, no request to anywhere, light and dark."""

from __future__ import annotations

import functools

import jinja2

from vertex_training.catalog import costs
from vertex_training.catalog.costs import usd
from vertex_training_cli.review import cells, picture, svg
from vertex_training_cli.review.escaping import visible
from vertex_training_cli.review.headline.answers import answers
from vertex_training_cli.review.images import changes as image_changes
from vertex_training_cli.review.report import ReviewReport
from vertex_training_cli.review.verdict import returned, totals, verdict


def render(report: ReviewReport) -> str:
    """The page. Every value is escaped by the template engine, and nothing is left out."""
    return template().render(
        report=report,
        verdict=verdict(report),
        changed_jobs=[job for job in report.jobs if job.action != "keep"],
        unchanged_jobs=[job for job in report.jobs if job.action == "keep"],
        answers=answers(report, visible),
        totals=totals(report),
        returned=returned(report, visible),
        cells=cells,
        image_changes=image_changes,
        accesses=cells.accesses(report),
        picture=svg.layout(picture.graph(report)),
        not_included=costs.NOT_INCLUDED,
    )


@functools.cache
def template() -> jinja2.Template:
    """The page's template, compiled."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vertex_training_cli.review", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["visible"] = visible
    environment.filters["usd"] = usd
    return environment.get_template("page.html.j2")
