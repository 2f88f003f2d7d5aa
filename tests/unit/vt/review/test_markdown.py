"""Parts of a report in Markdown that are there only where there is something to show."""

from __future__ import annotations

from tests.unit.vt.review import plans
from vertex_training_cli.review import markdown, report


def rendered(*told: plans.Event) -> str:
    return markdown.render(report.build(plans.plan(*told), source="here"))


def test_a_stack_without_jobs_has_no_section_of_jobs() -> None:
    bucket = plans.create(plans.BUCKET, "storage-data", name="data")
    assert "### Jobs" not in rendered(bucket)
    assert "### Jobs" in rendered(bucket, plans.create(plans.JOB, "training-a", **plans.job("a")))


def test_a_field_that_comes_or_goes_is_absent_on_the_other_side() -> None:
    text = rendered(
        plans.step(
            "update", plans.BUCKET, "storage-b", old={"x": 1, "gone": 2}, new={"x": 3, "come": 4}
        )
    )
    assert "`x`: `1` → `3`" in text
    assert "`gone`: `2` → (absent)" in text
    assert "`come`: (absent) → `4`" in text
