"""Limits of a stack hold for its jobs and for the stack as a whole."""

from pathlib import Path

import pytest

from tests.unit.infra.stacks import BASE, planned, refused
from vertex_training.catalog import costs
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


def verdicts(root, **changes):
    (root / "job.yaml").write_text(JOB)
    jobs = {name: {"file": "job.yaml"} for name in ("one", "two")}
    found = from_raw(BASE | {"jobs": jobs} | changes, root)
    return found, found.check_jobs()


def total(root, **given):
    found, judged = verdicts(root, limits=given)
    return found.exceeded_limits(judged)


def kept(count, **more):
    spare = {"zone": "us-central1-a", "machineType": "n1-standard-8", "count": count, **more}
    return planned(reservations={"spare": spare}, limits={"maxUsdPerEnvironment": 2000})


def test_a_reservation_of_others_counts_for_nothing_here():
    path = "projects/acme-gpus/zones/us-central1-a/reservations/spare"
    assert kept(30, existing=path).exceeded_limits({}) == []


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
        ({"regions": ["us-centrl1"]}, ".regions[0]", "did you mean 'us-central1'?"),
        ({"machineTypes": ["n1-*", "h9-*"]}, ".machineTypes[1]", "no machine type"),
    ],
)
def test_a_limit_that_would_limit_nothing_is_refused(given, path, text):
    [(where, told)] = refused(limits=given)
    assert where == f"limits{path}"
    assert text in told
