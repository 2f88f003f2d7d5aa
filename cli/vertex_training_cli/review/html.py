"""Writes the report as one HTML page for light and dark mode, without scripts and requests."""

from __future__ import annotations

import functools
from typing import Final

import jinja2
from markupsafe import Markup, escape

from vertex_training_cli.review import headline
from vertex_training_cli.review.escaping import visible
from vertex_training_cli.review.report import ReviewReport
from vertex_training_cli.review.sections import sections

#: Mark around a value or emphasized words -> tag. Marks are private-use characters of Unicode,
#: which ``visible`` spells out in values, so that no value can create a tag.
TAGS: Final = {"\ue000": "<code>", "\ue001": "</code>", "\ue002": "<strong>", "\ue003": "</strong>"}


def render(report: ReviewReport) -> str:
    """Return the complete report as a page. The template engine escapes every value."""
    return template().render(
        report=report,
        verdict=headline.verdict(report, _quoted),
        subject=headline.subject(report, _quoted),
        readiness=headline.readiness(report),
        commands=headline.commands(report),
        rows=headline.rows(report, _quoted),
        without_row=headline.without_row(report, _quoted),
        sections=sections(report, _quoted, lambda words: f"\ue002{words}\ue003"),
    )


def _quoted(value: str, _length: int = 0) -> str:
    shown = visible(value)
    return f"\ue000{shown}\ue001" if shown else ""


def _tagged(text: str) -> Markup:
    return Markup(str(escape(text)).translate(str.maketrans(TAGS)))


@functools.cache
def template() -> jinja2.Template:
    """Return the compiled template of the page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vertex_training_cli.review", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "visible": visible,
        "tagged": _tagged,
        # For use in an attribute.
        "untagged": lambda text: text.translate(dict.fromkeys(map(ord, TAGS))),
        "kind": lambda part: type(part).__name__,
    }
    return environment.get_template("page.html.j2")
