"""Curves of jobs as lines of a plot: points, scales, colours and dashes."""

from __future__ import annotations

import math

import pytest

from vertex_training_cli.jobs import page
from vertex_training_cli.jobs.compare import Compared
from vertex_training_cli.jobs.page import Curve, Plot


def job(name: str, run: str = "1", **curves: list[float]) -> Compared:
    return Compared(name, run, "id", "RUNNING", "1m", "$1", {}, {}, curves)


def test_a_metric_of_two_jobs_is_one_plot_on_one_scale() -> None:
    jobs = [job("a", loss=[4.0, 2.0, 0.0]), job("b", "", loss=[1.0], acc=[0.5]), job("c")]
    assert page.plots(jobs) == [
        Plot("loss", "0", "4", 3, (
            Curve("a 1", "#0072b2", "", ("0.0,0.0 240.0,100.0 480.0,200.0",), "0"),
            Curve("b", "#d55e00", "", ("0.0,150.0 0.0,150.0",), "1"),
        )),
        Plot("acc", "0.5", "0.5", 1, (
            Curve("b", "#d55e00", "", ("0.0,100.0 0.0,100.0",), "0.5"),
        )),
    ]  # fmt: skip


def test_what_is_no_number_is_a_gap() -> None:
    [plot] = page.plots([job("a", x=[0.0, math.nan, 1.0, 0.0, math.inf])])
    assert (plot.low, plot.high, plot.steps) == ("0", "1", 5)
    [line] = plot.lines
    assert line.pieces == ("0.0,200.0 0.0,200.0", "240.0,0.0 360.0,200.0")
    assert line.last == "inf"
    [plot] = page.plots([job("a", x=[math.nan])])
    assert (plot.low, plot.high, plot.lines[0].pieces) == ("0", "0", ())


def test_more_values_than_places_are_thinned_and_keep_both_ends() -> None:
    [plot] = page.plots([job("a", x=[float(number) for number in range(961)])])
    points = plot.lines[0].pieces[0].split(" ")
    assert (len(points), points[0], points[-1]) == (480, "0.0,200.0", "480.0,0.0")


def test_each_of_many_jobs_has_a_colour_and_then_a_dash_of_its_own() -> None:
    jobs = [job(str(number), x=[1.0]) for number in range(29)]
    [plot] = page.plots(jobs)
    looks = [(line.colour, line.dash) for line in plot.lines]
    assert looks[:8] == [
        ("#0072b2", ""), ("#d55e00", ""), ("#009e73", ""), ("#cc79a7", ""), ("#56b4e9", ""),
        ("#e69f00", ""), ("#767676", ""), ("#0072b2", "6 3"),
    ]  # fmt: skip
    assert [dash for _, dash in looks[::7]] == ["", "6 3", "2 3", "8 3 2 3", ""]
    assert len(set(looks)) == 28


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb", "a b"), ("a\u202eb", "a\ufffdb"), ("x" * 160, "x" * 160),
        ("x" * 161, "x" * 159 + "…"),
    ],
)  # fmt: skip
def test_a_name_is_one_line_without_what_hides_others(text: str, shown: str) -> None:
    assert page.cut(text) == shown


def test_the_page_has_every_row_and_plot_and_escapes_names() -> None:
    text = page.render([job("<b>", loss=[1.0, 0.5])])
    assert "&lt;b&gt; 1" in text
    assert "<b> 1" not in text
    assert 'points="0.0,0.0 480.0,200.0"' in text
    assert "loss (curve)" not in text  # a plot is there in its place
