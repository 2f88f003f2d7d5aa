"""Limits of a stack hold for its jobs and for the stack as a whole."""

from pathlib import Path

import pytest

from tests.unit.infra.stacks import BASE, planned, refused, stack
from vertex_training.catalog import costs
from vertex_training.customjob.rules.context import JobLimits
from vertex_training.plan.facts import job_limits
from vertex_training.stack import from_raw

JOB = """\
serviceAccount: trainer-prod@acme-ml-prod.iam.gserviceaccount.com
baseOutputDirectory: {outputUriPrefix: "gs://out/${job.name}"}
scheduling: {timeout: 36000s}
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-4}
  containerSpec: {imageUri: "eu.example/x/y@sha256:%s"}
""" % ("0" * 64)
RATE = costs.hourly("n1-standard-4", None, 0, "us-central1")
assert RATE is not None
COST = RATE.usd * 10


def verdicts(root, **changes):
    (root / "job.yaml").write_text(JOB)
    jobs = {name: {"file": "job.yaml"} for name in ("one", "two")}
    found = from_raw(BASE | {"jobs": jobs} | changes, root)
    return found, found.check_jobs()


def total(root, **given):
    found, judged = verdicts(root, limits=given)
    return found.exceeded_limits(judged)


def rules_of(judged):
    return [p.rule for verdict in judged.values() for p in verdict.errors]


def test_without_limits_nothing_is_limited():
    assert job_limits(stack()) == JobLimits()
    assert planned().exceeded_limits({}) == []


def test_a_job_over_its_limit_is_refused_at_its_timeout_with_one_that_would_do(tmp_path):
    _, judged = verdicts(tmp_path, limits={"maxUsdPerJob": COST - 0.01})
    [problem] = judged["one"].errors
    assert (problem.rule, str(problem.location)) == ("limit-job-cost", "job.yaml:3:23")
    assert f"may cost ${COST:.2f} ($0.22 an hour), the limit of a job is $2.17" in problem.what
    seconds = int(problem.hint.split('"')[1].removesuffix("s"))
    assert RATE.usd * seconds / 3600 <= COST - 0.01 < RATE.usd * (seconds + 60) / 3600


def test_a_limit_that_another_regions_price_breaks_says_so(tmp_path, monkeypatch):
    g2 = "g2-standard-4, acceleratorType: NVIDIA_L4, acceleratorCount: 1"
    monkeypatch.setattr(f"{__name__}.JOB", JOB.replace("n1-standard-4", g2))
    _, judged = verdicts(tmp_path, region="europe-west4", limits={"maxUsdPerJob": 1})
    [what] = [p.what for p in judged["one"].errors if p.rule == "limit-job-cost"]
    assert "at prices of us-central1: those of the job's region are unknown" in what


def test_a_job_at_its_limit_may_run(tmp_path):
    _, judged = verdicts(tmp_path, limits={"maxUsdPerJob": COST})
    assert rules_of(judged) == []


def test_all_jobs_together_keep_the_environments_limit(tmp_path):
    assert total(tmp_path, maxUsdPerEnvironment=2 * COST) == []
    [problem] = total(tmp_path, maxUsdPerEnvironment=2 * COST - 0.01)
    assert problem.rule == "limit-environment-cost"
    assert f"may cost ${2 * COST:.2f}, the limit is ${2 * COST - 0.01:.2f}" in problem.what
    assert "one $2.18, two $2.18" in problem.hint


def test_a_team_pays_for_the_jobs_of_its_own_accounts(tmp_path):
    account = {"trainer": {"team": "vision"}}
    teams = {
        name: {"submitters": ["group:a@example.com"], "limits": {"maxUsdPerTeam": 2 * COST - 0.01}}
        for name in ("vision", "speech")
    }
    found, judged = verdicts(tmp_path, teams=teams, serviceAccounts=account)
    [problem] = found.exceeded_limits(judged)
    assert problem.path == ("vertex-training:teams", "vision", "limits", "maxUsdPerTeam")
    assert f"all jobs of team vision together may cost ${2 * COST:.2f}" in problem.what
    teams["vision"]["limits"] = {"maxUsdPerTeam": 2 * COST}
    found, judged = verdicts(tmp_path, teams=teams, serviceAccounts=account)
    assert found.exceeded_limits(judged) == []


def test_a_sum_with_prices_of_another_region_says_whose_jobs_they_are(tmp_path, monkeypatch):
    g2 = "g2-standard-4, acceleratorType: NVIDIA_L4, acceleratorCount: 1"
    monkeypatch.setattr(f"{__name__}.JOB", JOB.replace("n1-standard-4", g2))
    limits = {"maxUsdPerEnvironment": 1}
    found, judged = verdicts(tmp_path, region="europe-west4", limits=limits)
    [problem] = found.exceeded_limits(judged)
    assert "; prices of the region of one, two are unknown, another's were taken" in problem.what


def test_a_broken_limit_stands_at_its_line_of_the_stack_file(tmp_path):
    (tmp_path / "Pulumi.prod.yaml").write_text(
        "config:\n  gcp:region: us-central1\n"
        "  vertex-training:limits:\n    regions: [us-east1]\n    maxUsdPerEnvironment: 1\n"
    )
    found = total(tmp_path, maxUsdPerEnvironment=1, regions=["us-east1"])
    assert [(p.rule, str(p.location)) for p in found] == [
        ("limit-region", "Pulumi.prod.yaml:2:3"),
        ("limit-environment-cost", "Pulumi.prod.yaml:5:5"),
    ]


def test_a_limit_in_usd_asks_for_prices_unless_it_allows_to_go_without():
    for given in ({"maxUsdPerJob": 1}, {"maxUsdPerEnvironment": 1}):
        assert job_limits(stack(limits=given)).priced
        assert not job_limits(stack(limits=given | {"allowUnpriced": True})).priced
    assert not job_limits(stack(limits={"strategies": ["SPOT"]})).priced


def kept(count, **more):
    spare = {"zone": "us-central1-a", "machineType": "n1-standard-8", "count": count, **more}
    return planned(reservations={"spare": spare}, limits={"maxUsdPerEnvironment": 2000})


def test_a_month_of_reservations_counts_towards_the_environments_limit():
    assert kept(3).exceeded_limits({}) == []
    [problem] = kept(30).exceeded_limits({})
    assert problem.rule == "limit-environment-cost"
    assert "together may cost $8,321.96, the limit is $2,000.00" in problem.what
    assert "reservation spare (a month) $8,321.96" in problem.hint


def test_a_reservation_that_deletes_itself_counts_for_as_long_as_it_is_there():
    assert kept(30, deleteAfterDuration="36000s").exceeded_limits({}) == []


def test_a_reservation_of_others_counts_for_nothing_here():
    path = "projects/acme-gpus/zones/us-central1-a/reservations/spare"
    assert kept(30, existing=path).exceeded_limits({}) == []


def test_a_reservation_without_a_price_is_refused_under_a_limit_in_usd(monkeypatch):
    monkeypatch.setattr(costs, "hourly", lambda *_, **__: None)
    [problem] = kept(1).exceeded_limits({})
    assert problem.rule == "limit-price-unknown"
    assert problem.path[-1] == "spare"


def serving(limits, split=None, **endpoint):
    """What is over the limits of a stack with one endpoint on n1-standard-2."""
    given = {"machine": "n1-standard-2", "replicas": {"min": 1, "max": 2}, **endpoint}
    image = f"us-central1-docker.pkg.dev/acme/serve/serve@sha256:{'0' * 64}"
    sections = {
        "jobs": {"titanic": {"file": Path(__file__).name, "run": 4}},
        "models": {"titanic": {"run": [3, 4], "container": image}},
        "endpoints": {"titanic": given | {"split": split or {"run 3": 90, "run 4": 10}}},
        "teams": {
            "vision": {"submitters": ["group:v@example.com"], "limits": limits.pop("team", {})}
        },
        "limits": limits,
    }
    found = from_raw(BASE | sections, Path(__file__).parent)
    return [(p.rule, p.path, p.what) for p in found.exceeded_limits({})]


#: n1-standard-2 x 1.15 x 730 h: $79.75208 for one machine; two versions with two replicas each.
MONTH = 0.189999 / 2 * 1.15 * 730 * 2 * 2


def test_an_endpoint_is_held_to_a_limit_a_month_with_all_versions_and_replicas():
    assert serving({"maxUsdPerMonth": MONTH + 0.01}) == []
    [(rule, path, what)] = serving({"maxUsdPerMonth": 319})
    assert (rule, path) == (
        "limit-endpoint-cost",
        ("vertex-training:endpoints", "titanic", "machine"),
    )
    assert what == "may cost $319.01 a month, limits.maxUsdPerMonth is $319.00"
    assert serving({"maxUsdPerMonth": 319}, split={"run 4": 100}) == []


@pytest.mark.parametrize("limit", ["maxUsdPerMonth", "maxUsdPerMonthInTotal"])
def test_an_endpoint_at_a_limit_is_not_over_it(limit, monkeypatch):
    rate = costs.Rate(1.0, "source", "2026-01-01", "us-central1", exact=True)
    monkeypatch.setattr(costs, "hourly", lambda *_, **__: rate)
    assert serving({limit: 2 * 2 * 730}) == []
    assert len(serving({limit: 2 * 2 * 730 - 0.01})) == 1


def test_an_endpoint_of_a_team_is_held_to_the_teams_limit():
    limits = {"team": {"maxUsdPerMonth": 100}, "maxUsdPerMonth": 500}
    [(_, _, what)] = serving(dict(limits), team="vision")
    assert "teams.vision.limits.maxUsdPerMonth is $100.00" in what
    assert serving(dict(limits)) == []


def test_all_endpoints_together_are_held_to_a_limit():
    [(rule, path, what)] = serving({"maxUsdPerMonthInTotal": 300})
    assert (rule, path) == (
        "limit-environment-cost",
        ("vertex-training:limits", "maxUsdPerMonthInTotal"),
    )
    assert "all endpoints in a month together may cost $319.01, the limit is $300.00" in what


def test_an_endpoint_without_a_price_is_refused_under_a_limit_unless_that_is_allowed():
    for limits in ({"maxUsdPerMonth": 1}, {"maxUsdPerMonthInTotal": 1}):
        found = serving(dict(limits), machine="n9-standard-2")
        assert [rule for rule, *_ in found] == ["limit-price-unknown"]
        assert serving(limits | {"allowUnpriced": True}, machine="n9-standard-2") == []
    assert serving({}, machine="n9-standard-2") == []


def test_an_endpoint_runs_on_machine_types_that_the_limits_allow():
    assert serving({"machineTypes": ["n1-*"]}) == []
    [(rule, _, _)] = serving({"machineTypes": ["g2-*"]})
    assert rule == "limit-machine-type"


@pytest.mark.parametrize(
    ("given", "path", "text"),
    [
        (
            {"maxUsdPerMonth": 2, "maxUsdPerMonthInTotal": 1},
            ".maxUsdPerMonth",
            "more than all endpoints together may cost: $1.00",
        ),
        ({"maxUsdPerJob": 0}, ".maxUsdPerJob", "greater than 0"),
        ({"maxUsdPerJob": "inf"}, ".maxUsdPerJob", "finite"),
        ({"maxUsdPerJobs": 1}, ".maxUsdPerJobs", "did you mean 'maxUsdPerJob'?"),
        ({"regions": []}, ".regions", "at least 1 item"),
        ({"regions": ["us-centrl1"]}, ".regions[0]", "did you mean 'us-central1'?"),
        ({"machineTypes": ["n1-*", "h9-*"]}, ".machineTypes[1]", "no machine type"),
        ({"strategies": ["CHEAP"]}, ".strategies[0]", "'STANDARD', 'SPOT' or 'FLEX_START'"),
    ],
)
def test_a_limit_that_would_limit_nothing_is_refused(given, path, text):
    [(where, told)] = refused(limits=given)
    assert where == f"limits{path}"
    assert text in told


def test_a_stack_file_may_name_machine_types_by_their_family(tmp_path):
    _, judged = verdicts(tmp_path, limits={"machineTypes": ["n1-*"]})
    assert rules_of(judged) == []
    _, judged = verdicts(tmp_path, limits={"machineTypes": ["a2-*"]})
    assert rules_of(judged) == ["limit-machine-type"] * 2


def test_the_timeout_a_hint_names_is_accepted(tmp_path):
    _, judged = verdicts(tmp_path, limits={"maxUsdPerJob": 1})
    hint = judged["one"].errors[0].hint.split('"')[1]
    (tmp_path / "other.yaml").write_text(JOB.replace("36000s", hint))
    found, _ = verdicts(tmp_path, limits={"maxUsdPerJob": 1})
    again = found.check_other((tmp_path / "other.yaml").read_bytes(), "other.yaml", "other")
    assert again.errors == ()


def test_a_job_on_batch_is_held_to_its_limit_with_all_attempts(tmp_path):
    jobs = {"one": {"file": "job.yaml", "backend": "batch"}}
    _, judged = verdicts(tmp_path, jobs=jobs, limits={"maxUsdPerJob": 7.5})
    [what] = [p.what for p in judged["one"].errors if p.rule == "limit-job-cost"]
    # 0.189999 an hour without a fee, four attempts of 10 h.
    assert what == "may cost $7.60 ($0.19 an hour in 4 attempts), the limit of a job is $7.50"
    _, judged = verdicts(tmp_path, jobs=jobs, limits={"maxUsdPerJob": 7.6})
    assert "limit-job-cost" not in rules_of(judged)
