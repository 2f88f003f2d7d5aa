"""Tuning files, right and wrong: the rule, the place and the grade of every mistake."""

import pytest

from tests.unit.infra.customjob.rules.tuning_cases import CASES, RIGHT
from tests.unit.infra.customjob.test_corpus import TABLE
from vertex_training import catalog
from vertex_training.customjob import rules
from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import Submission
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding
from vertex_training.customjob.rules.tuning import parameters
from vertex_training.errors import dotted

WHO = Submission("acme-ml-dev", "us-central1", "dev", "tune", run=1)


def check(text, kind=None):
    return spec.check_job_file(text.encode(), "x.yaml", WHO, TABLE, kind=kind)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_wrong_file_breaks_its_rule_at_its_place(case):
    assert RIGHT.count(case.old) == 1, "the edit must be unambiguous"
    text = RIGHT.replace(case.old, case.new)
    found = [problem for problem in check(text).problems if problem.rule == case.rule]
    assert [(dotted(problem.path), problem.level) for problem in found] == [(case.at, case.level)]
    others = {problem.rule for problem in check(text).problems} - {case.rule}
    assert others <= {"early-stopping"}, [str(problem) for problem in check(text).problems]
    assert 1 <= found[0].location.line <= len(text.splitlines()) + 1
    assert found[0].hint


def test_conditions_of_one_value_are_told_with_the_id_that_they_have():
    condition = {"parentIntValues": {"values": [1]}}
    children = [condition, condition | {"parameterSpec": {"parameterId": "x"}}, condition]
    children.append(condition | {"parameterSpec": {"parameterId": "x"}})
    parent = {"parameterId": "p", "integerValueSpec": {"minValue": 1, "maxValue": 2}}
    study = {"parameters": [parent | {"conditionalParameterSpecs": children}]}
    what = "a condition of the same id has one of these values, too"
    place = ("studySpec", "parameters", 0, "conditionalParameterSpecs")
    found = parameters.parameter_condition(Job({}, tuning={"studySpec": study}))
    assert [each for each in found if each.what == what] == [
        Finding((*place, 2, "parentIntValues"), what, "", "make them disjoint"),
        Finding((*place, 3, "parentIntValues"), what, "x", "make them disjoint"),
    ]


def test_there_are_forty_refused_files():
    assert sum(case.level == "error" for case in CASES) >= 40


def test_every_rule_about_tuning_is_broken_by_a_case():
    own = {rule.id for rule in rules.RULES if rule.subject in rules.OF_TUNING}
    assert own <= {case.rule for case in CASES}


def test_the_catalogue_repeats_no_message():
    custom = catalog.load("custom_job.json")["messages"]
    assert not custom.keys() & catalog.load("tuning_job.json")["messages"].keys()
