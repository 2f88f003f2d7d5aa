"""Fields that are new or gone, and jobs of which nothing differs."""

import json

from tests.unit.vt.review import plans
from vertex_training_cli.review import json_report, markdown, report


def review(*events):
    return report.build(plans.plan(*events), source="here", problems=())


def submitted():
    return plans.create(plans.JOB, "training-new", **plans.job("new"))


def changed():
    old, new = plans.job("train"), plans.job("train", plans.pool(replicas=2), run=2)
    return plans.step("replace", plans.JOB, "training-train", old=old, new=new)


def test_a_job_of_which_nothing_differs_has_no_list_of_differences():
    assert "What differs in job" not in markdown.render(review(submitted()))
    assert "What differs in job" in markdown.render(review(changed()))


def test_a_job_says_in_what_state_the_one_before_it_was():
    [job] = json.loads(json_report.render(review(submitted())))["jobs"]
    assert "previousState" in job
