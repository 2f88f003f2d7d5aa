"""Tuning files, right and wrong: the rule, the place and the grade of every mistake."""

import json
import re

import pytest

from tests.unit.infra.customjob.rules.tuning_cases import CASES, RIGHT
from tests.unit.infra.customjob.test_corpus import TABLE
from vertex_training import catalog
from vertex_training.customjob import rules
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import Submission
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding
from vertex_training.customjob.rules.tuning import parameters
from vertex_training.errors import dotted

WHO = Submission("acme-ml-dev", "us-central1", "dev", "tune", run=1)


def check(text, kind=None):
    return spec.check_job_file(text.encode(), "x.yaml", WHO, TABLE, kind=kind)


def test_the_right_file_breaks_no_rule():
    result = check(RIGHT, TUNING_JOB)
    assert [str(problem) for problem in result.problems] == []
    assert result.request.kind is TUNING_JOB


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


def test_a_count_that_is_left_out_is_one_as_by_gclouds_flag():
    """googlecloudsdk/api_lib/ai/hp_tuning_jobs/client.py, Google Cloud CLI 528.0.0."""
    text = RIGHT.replace("maxTrialCount: 60\n", "").replace("parallelTrialCount: 3\n", "")
    sent = check(text.replace("maxFailedTrialCount: 2\n", "")).request.message
    assert (sent["maxTrialCount"], sent["parallelTrialCount"]) == (1, 1)


def test_parameters_without_an_id_are_told_as_that_alone():
    text = RIGHT.replace("- parameterId: layers\n      scale", "- scale")
    text = text.replace("- parameterId: batch\n     ", "-")
    found = [each for each in check(text).problems if each.rule == "parameter-id"]
    assert [each.what for each in found] == ["has no parameterId"] * 2


def test_a_scale_alone_is_told_as_a_parameter_without_values():
    text = RIGHT.replace("      doubleValueSpec: {minValue: 1e-4, maxValue: 0.1}\n", "")
    found = [each for each in check(text).problems if each.rule.startswith("parameter-")]
    assert [(each.rule, dotted(each.path)) for each in found] == [
        ("parameter-values", "studySpec.parameters[0]")
    ]


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


def test_what_is_sent_is_what_the_official_parser_takes():
    from google.cloud import aiplatform_v1
    from google.protobuf import json_format

    body = check(RIGHT).request.body
    message = aiplatform_v1.HyperparameterTuningJob.pb(aiplatform_v1.HyperparameterTuningJob())
    json_format.ParseDict(json.loads(body), message)
    assert [p.parameter_id for p in message.study_spec.parameters] == [
        "learning_rate", "layers", "batch", "optimizer",
    ]  # fmt: skip
    assert message.study_spec.parameters[0].double_value_spec.min_value == 1e-4
    assert message.max_trial_count == 60


def test_snake_case_and_json_are_the_same_request():
    snake = re.sub(r"\b([a-z]+(?:[A-Z][a-z]+)+)(?=:)", lambda m: _snake(m[1]), RIGHT)
    assert "max_trial_count" in snake
    one = check(RIGHT).request
    assert check(snake).request.body == one.body
    assert check(json.dumps(one.message)).request.body == one.body


def test_numbers_of_one_value_are_one_request():
    for same in ("0.0001", "1.0e-4", '"1e-4"'):
        assert check(RIGHT.replace("1e-4", same)).request.body == check(RIGHT).request.body
    assert check(RIGHT.replace("[16, 32", "[16.0, 32")).request.body == check(RIGHT).request.body


def test_each_kind_is_refused_in_the_section_of_the_other():
    job = spec.canonical(check(RIGHT).request.trial)
    for text, kind, section in ((RIGHT, CUSTOM_JOB, "tuning"), (job, TUNING_JOB, "jobs")):
        [problem] = check(text, kind).errors
        assert problem.rule == "other-resource"
        assert f"vertex-training:{section}" in problem.hint
    assert check(job, CUSTOM_JOB).errors == ()


def test_hints_name_the_fields_of_a_tuning_job():
    text = RIGHT.replace("scheduling: {timeout: 3600s}", "useSpot: true")
    [problem] = check(text).errors
    assert "in trialJobSpec" in problem.hint
    [problem] = check(RIGHT + "run: 2\n").errors
    assert "vertex-training:tuning: {NAME" in problem.hint


def test_the_catalogue_repeats_no_message():
    custom = catalog.load("custom_job.json")["messages"]
    assert not custom.keys() & catalog.load("tuning_job.json")["messages"].keys()


def _snake(key):
    return re.sub(r"([A-Z])", lambda match: f"_{match[1].lower()}", key)
