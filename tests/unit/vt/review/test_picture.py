"""The picture of the stack after a change."""

from __future__ import annotations

from tests.unit.vt.review import plans
from vertex_training_cli.review import picture, report
from vertex_training_cli.review.picture import Graph


def graph(*told: plans.Event) -> Graph:
    return picture.graph(report.build(plans.plan(*told), source="here"))


def submit(name: str) -> plans.Event:
    return plans.create(plans.JOB, f"training-{name}", **plans.job(name))


def edges(drawn: Graph) -> list[tuple[str, str, str, bool]]:
    return [(edge.one.text, edge.verb, edge.other.text, edge.new) for edge in drawn.edges]


def test_many_rights_and_jobs_do_not_fill_the_picture() -> None:
    rights = [plans.create(plans.MEMBER, f"m{n}", **plans.member(f"b{n:03}")) for n in range(200)]
    drawn = graph(*rights, *(submit(f"job-{n}") for n in range(200)))
    assert len(drawn.edges) == picture.MAX_EDGES + 1
    assert drawn.left == 200 - picture.MAX_EDGES
    assert "80 more rights" in picture.mermaid(drawn)
    assert "200, 200 of them new or changed" in drawn.edges[-1].one.text
