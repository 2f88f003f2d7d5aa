"""Tuning jobs in a stack: what is declared, under which limits, and what cannot be combined."""

import asyncio

import pulumi

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


def test_limits_of_the_environment_and_of_a_team_count_tuning_jobs(tmp_path):
    [found] = problems(tmp_path, limits={"maxUsdPerEnvironment": 1})
    assert f"all jobs together may cost ${60 * RATE:.2f}" in found
    teams = {"ml": {"limits": {"maxUsdPerTeam": 1}}}
    accounts = {"trainer": {"team": "ml"}}
    [found] = problems(tmp_path, teams=teams, serviceAccounts=accounts)
    assert "all jobs of team ml" in found


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


def test_trials_need_no_grant_that_jobs_do_not_have(tmp_path):
    jobs = declared(stack(tmp_path, tuning={}, jobs={"tune": {"file": "job.yaml"}}))
    assert grants(declared(stack(tmp_path))) == grants(jobs)
