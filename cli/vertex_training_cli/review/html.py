"""The report as one HTML page: no script, no request to anywhere, light and dark."""

from __future__ import annotations

import functools
from typing import Final

import jinja2
from markupsafe import Markup, escape

from vertex_training_cli.review.escaping import visible
from vertex_training_cli.review.headline import answers, verdict, without_answer
from vertex_training_cli.review.report import ReviewReport
from vertex_training_cli.review.sections import sections

#: Characters around values and strong words -> their tags. They are of Unicode's private use, so
#: ``visible`` spells them out wherever a value has one, and no value makes a tag.
TAGS: Final = {"\ue000": "<code>", "\ue001": "</code>", "\ue002": "<strong>", "\ue003": "</strong>"}


def render(report: ReviewReport) -> str:
    """Return the page. The template engine escapes every value, and nothing is left out."""
    return template().render(
        report=report,
        verdict=verdict(report, _quoted),
        answers=answers(report, _quoted),
        without_answer=without_answer(report),
        sections=sections(report, _quoted, lambda words: f"\ue002{words}\ue003"),
    )


def _quoted(value: str, _length: int = 0) -> str:
    shown = visible(value)
    return f"\ue000{shown}\ue001" if shown else ""


def _tagged(text: str) -> Markup:
    """Return escaped words with tags around values and strong words."""
    return Markup(str(escape(text)).translate(str.maketrans(TAGS)))


def _untagged(text: str) -> str:
    """Return the words without tags, for an attribute."""
    return text.translate(dict.fromkeys(map(ord, TAGS)))


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
        "untagged": _untagged,
        "kind": lambda part: type(part).__name__,
    }
    return environment.get_template("page.html.j2")
