"""Tuning jobs in a stack: what is declared, under which limits, and what cannot be combined."""

import asyncio
import json
import re

import pulumi
import pytest

from tests.unit.infra.customjob.rules.tuning_cases import RIGHT
from tests.unit.infra.recorder import Recorder, grants
from tests.unit.infra.stacks import BASE
from vertex_training import program
from vertex_training.catalog import costs
from vertex_training.errors import ConfigError
from vertex_training.stack import from_raw

ACCOUNT = "trainer-prod@acme-ml-prod.iam.gserviceaccount.com"
#: The right file with what this stack has; a trial costs what its machine costs in an hour.
FILE = (
    RIGHT.replace("${serviceAccounts.trainer}", ACCOUNT)
    .replace("${images.trainer}", f"eu.example/x/y@sha256:{'0' * 64}")
    .replace("${buckets.artifacts}", "gs://out")
)
JOB = FILE[FILE.index("  serviceAccount") :].replace("\n  ", "\n").removeprefix("  ")
RATE = costs.hourly("n1-standard-4", None, 0, "us-central1").usd


def stack(root, **changes):
    (root / "tune.yaml").write_text(FILE)
    (root / "job.yaml").write_text(JOB)
    return from_raw(BASE | {"tuning": {"tune": {"file": "tune.yaml"}}} | changes, root)


def problems(root, **changes):
    try:
        found = stack(root, **changes)
    except ConfigError as refused:
        return [str(problem) for problem in refused.problems]
    results = found.check_jobs()
    of_files = [problem for result in results.values() for problem in result.errors]
    return [str(problem) for problem in (*of_files, *found.exceeded_limits(results))]


def test_a_stack_with_a_tuning_job_is_in_order(tmp_path):
    assert problems(tmp_path) == []


def test_the_worst_case_is_that_of_all_trials_and_the_rate_that_of_those_at_once(tmp_path):
    request = stack(tmp_path).check_jobs()["tune"].request
    cost = costs.of_job(request.message, "us-central1")
    assert (cost.trials, cost.parallel) == (60, 3)
    assert cost.hourly == pytest.approx(3 * RATE)
    assert cost.worst_case == pytest.approx(60 * RATE)
    assert str(cost) == f"${60 * RATE:,.2f} in 60 trials of 1 h"


def test_more_in_parallel_than_there_are_trials_is_not_paid_for():
    message = {"maxTrialCount": 2, "parallelTrialCount": 9, "trialJobSpec": {}}
    assert costs.of_job(message, "us-central1").parallel == 2


def test_a_limit_of_a_job_holds_for_all_its_trials_together(tmp_path):
    assert problems(tmp_path, limits={"maxUsdPerJob": 60 * RATE}) == []
    [found] = problems(tmp_path, limits={"maxUsdPerJob": 59 * RATE})
    assert "tune.yaml:30:" in found
    assert f"${3 * RATE:.2f} an hour, 3 of 60 trials at once" in found
    seconds = int(re.search(r'timeout: "(\d+)s"', found)[1])
    assert seconds == int(3600 * 59 / 60)
    assert "so do fewer trials" in found


def test_limits_of_the_environment_and_of_a_team_count_tuning_jobs(tmp_path):
    [found] = problems(tmp_path, limits={"maxUsdPerEnvironment": 1})
    assert f"all jobs together may cost ${60 * RATE:.2f}" in found
    teams = {"ml": {"limits": {"maxUsdPerTeam": 1}}}
    accounts = {"trainer": {"team": "ml"}}
    [found] = problems(tmp_path, teams=teams, serviceAccounts=accounts)
    assert "all jobs of team ml" in found


def test_a_job_file_in_tuning_and_a_tuning_file_in_jobs_are_refused(tmp_path):
    [one] = problems(tmp_path, tuning={"x": {"file": "job.yaml"}})
    assert "is a CustomJob, not a HyperparameterTuningJob" in one
    [other] = problems(tmp_path, tuning={}, jobs={"x": {"file": "tune.yaml"}})
    assert "is a HyperparameterTuningJob, not a CustomJob" in other
    assert "vertex-training:tuning" in other


def test_one_name_is_not_a_job_and_a_tuning_job(tmp_path):
    [found] = problems(tmp_path, jobs={"tune": {"file": "job.yaml"}})
    assert "tuning.tune: job 'tune' has this name" in found
    renamed = {"new": {"file": "job.yaml", "formerly": "tune"}}
    [found] = problems(tmp_path, jobs=renamed)
    assert "job 'new' has this name" in found
    formerly = {"x": {"file": "tune.yaml", "formerly": "y"}}
    [found] = problems(tmp_path, jobs={"y": {"file": "job.yaml"}}, tuning=formerly)
    assert "job 'y' has this name" in found


def test_a_renamed_tuning_job_is_the_same_request(tmp_path):
    before = stack(tmp_path).check_jobs()["tune"].request
    renamed = {"best": {"file": "tune.yaml", "formerly": "tune"}}
    assert stack(tmp_path, tuning=renamed).check_jobs()["best"].request == before


def test_a_tuning_job_does_not_write_where_a_job_does(tmp_path):
    same = JOB.replace("${job.requestId}", "shared")
    (tmp_path / "other.yaml").write_text(FILE.replace("${job.requestId}", "shared"))
    (tmp_path / "same.yaml").write_text(same)
    found = problems(
        tmp_path, jobs={"a": {"file": "same.yaml"}}, tuning={"b": {"file": "other.yaml"}}
    )
    assert ["writes there too" in each for each in found] == [True, True]


def test_trials_at_once_share_the_addresses_of_a_network(tmp_path):
    network = {"mode": "psc", "subnet": {"range": "10.20.0.0/28"}}
    attached = FILE.replace(
        "  scheduling", "  pscInterfaceConfig: ${network.interface}\n  scheduling"
    )

    def warned(parallel):
        text = attached.replace("parallelTrialCount: 3", f"parallelTrialCount: {parallel}")
        (tmp_path / "net.yaml").write_text(text)
        found = stack(tmp_path, network=network, tuning={"t": {"file": "net.yaml"}})
        return [p.rule for p in found.check_jobs()["t"].warnings]

    assert "interface-room" not in warned(3)
    assert "interface-room" in warned(30)


def test_defaults_of_the_stack_reach_trials(tmp_path):
    (tmp_path / "bare.yaml").write_text(FILE.replace(f"  serviceAccount: {ACCOUNT}\n", ""))
    found = stack(
        tmp_path,
        serviceAccounts={"trainer": {}},
        jobDefaults={"serviceAccount": "${serviceAccounts.trainer}", "labels": {"cost": "ml"}},
        tuning={"t": {"file": "bare.yaml"}},
    ).check_jobs()["t"]
    assert found.request.account == ACCOUNT
    assert found.request.message["labels"] == {"cost": "ml"}
    assert "jobSpec" not in found.request.message


def declared(found):
    """What the program registers for a stack."""
    recorder = Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, "vertex-training", "prod")

    @pulumi.runtime.test
    def run():
        program.deploy(found)

    run()
    return recorder.registered


def test_a_tuning_job_is_one_resource_beside_the_jobs(tmp_path):
    tuning = {"tune": {"file": "tune.yaml", "onChange": "finish", "run": 2}}
    found = declared(stack(tmp_path, tuning=tuning, jobs={"job": {"file": "job.yaml"}}))
    type_, inputs = found["training-tune"]
    assert type_ == "pulumi-python:dynamic/vertex:HyperparameterTuningJob"
    assert inputs["submission"] == {
        "project": "acme-ml-prod", "region": "us-central1", "stack": "prod", "job": "tune",
        "run": 2, "section": "tuning",
    }  # fmt: skip
    assert inputs["options"]["onChange"] == "finish"
    assert json.loads(inputs["request"])["trialJobSpec"]["serviceAccount"] == ACCOUNT
    assert found["training-job"][0] == "pulumi-python:dynamic/vertex:CustomJob"
    assert "section" not in found["training-job"][1]["submission"]


def test_trials_need_no_grant_that_jobs_do_not_have(tmp_path):
    jobs = declared(stack(tmp_path, tuning={}, jobs={"tune": {"file": "job.yaml"}}))
    assert grants(declared(stack(tmp_path))) == grants(jobs)
