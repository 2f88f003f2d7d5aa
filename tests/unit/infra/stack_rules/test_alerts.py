"""The sections on who is told of what: what they refuse, and what is made of them."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests.unit.infra.stacks import BASE, refused, rows, stack
from vertex_training.components.monitoring import log_publishers
from vertex_training.stack import Stack, read_settings
from vertex_training.stack_rules import alerts

NOWHERE = Path("/nonexistent")
MAIL = {"email": "ml-oncall@example.com"}
ONCALL = {"oncall": MAIL}
FAILED = {"channels": ["oncall"], "failed": True}
BUDGET = {"billingAccount": "012345-6789AB-CDEF01", "usdPerMonth": 2000}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give one of email, pubsub and existing"),
        (MAIL | {"pubsub": "projects/acme-ml-prod/topics/alerts"}, "give one of"),
        ({"email": "ml@example.com, other@example.com"}, "must look like"),
        ({"email": 'a"b@example.com'}, "must look like"),
        ({"email": "ml@example.com\nBcc: x@example.com"}, "must look like"),
        ({"pubsub": "alerts"}, "must look like"),
    ],
)
def test_a_channel_is_one_thing_that_has_its_form(given, said):
    [problem] = [p for p in refused(channels={"oncall": given}) if said in " ".join(p)]
    assert problem


@pytest.mark.parametrize(
    "project", ["acme-ml-dev", "acme-ml-prod2", "210987654321"], ids=lambda each: str(each)
)
def test_a_channel_of_another_project_is_refused(project):
    channel = {"existing": f"projects/{project}/notificationChannels/12"}
    found = refused(channels={"slack": channel}, alerts=FAILED | {"channels": ["slack"]})
    assert [path for path, _ in found] == ["channels.slack.existing"]
    assert "another project" in found[0][1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"channels": [], "failed": True}, "channels"),
        ({"channels": ["oncall"]}, "tells nothing"),
        ({"channels": ["oncal"], "failed": True}, "did you mean 'oncall'"),
        ({"channels": ["oncall", "oncall"], "failed": True}, "named twice"),
        ({"channels": ["oncall"], "gpuIdleBelow": "5%"}, "5% for 30m"),
        ({"channels": ["oncall"], "gpuIdleBelow": "0% for 30m"}, "5% for 30m"),
    ],
)
def test_alerts_that_could_tell_nobody_or_never_fire_are_refused(given, said):
    assert any(said in " ".join(each) for each in refused(channels=ONCALL, alerts=given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"thresholds": []}, "thresholds"),
        ({"thresholds": [0, 50]}, "thresholds[0]"),
        ({"thresholds": [-10]}, "thresholds[0]"),
        ({"usdPerMonth": 0}, "usdPerMonth"),
        ({"channels": ["bus"]}, "addresses alone"),
        ({"channels": ["nobody"]}, "no such channel"),
    ],
)
def test_a_budget_that_google_would_refuse_is_refused(given, said):
    channels = ONCALL | {"bus": {"pubsub": "projects/acme-ml-prod/topics/alerts"}}
    assert any(said in " ".join(each) for each in refused(channels=channels, budget=BUDGET | given))


def test_what_is_declared_and_told_nothing_is_said():
    keys = [f"c-{number}" for number in range(8)]  # in the order of the file, each time
    given = {"channels": dict.fromkeys(keys, MAIL) | ONCALL, "alerts": FAILED}
    found = [*alerts.warnings(stack(**given), NOWHERE)]
    hint = "name it in alerts or budget, or remove it"
    assert rows(found) == [(f"channels.{key}", "nothing is told to it", key, hint) for key in keys]
    assert {each.level for each in found} == {"warning"}


def test_two_stacks_of_one_project_are_told_that_both_are_about_all_of_it(tmp_path):
    number = {"vertex-training:projectNumber": BASE["projectNumber"]}
    other = number | {"gcp:project": "acme-ml-prod", "vertex-training:alerts": FAILED}
    (tmp_path / "Pulumi.other.yaml").write_text(yaml.safe_dump({"config": other}))
    elsewhere = other | {"gcp:project": "acme-ml-dev"}
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": elsewhere}))
    (tmp_path / "Pulumi.prod.yaml").write_text(yaml.safe_dump({"config": other}))
    raw = BASE | {"channels": ONCALL, "alerts": FAILED, "budget": BUDGET}
    made = Stack(read_settings(raw, tmp_path), tmp_path, {})
    found = [each for each in made.warnings({}) if each.what.startswith("is about")]
    assert [(each.path, each.what, each.level) for each in found] == [
        (
            ("vertex-training:alerts",),
            "is about all of acme-ml-prod, and so is that of Pulumi.other.yaml",
            "warning",
        )
    ]


BUS = {"bus": {"pubsub": "projects/acme-ml-prod/topics/states"}}


def on_batch(**messages):
    return {"titanic": {"file": "jobs/titanic.yaml", "backend": "batch", "messages": messages}}


@pytest.mark.parametrize(
    ("jobs", "path", "said"),
    [
        (on_batch(channel="buss"), "jobs.titanic.messages.channel", "did you mean 'bus'"),
        (on_batch(channel="oncall"), "jobs.titanic.messages.channel", "topics alone"),
        (on_batch(channel="bus", jobStates=["DONE"]), "jobs.titanic.messages.jobStates[0]", "DONE"),
        (on_batch(channel="bus", jobStates=[]), "jobs.titanic.messages", "tells nothing"),
        (on_batch(channel="bus", taskStates=["FAILED"] * 2), "jobs.titanic.messages", "twice"),
    ],
)
def test_messages_that_batch_would_not_write_are_refused(jobs, path, said):
    found = refused(channels=ONCALL | BUS, jobs=jobs)
    assert [where for where, _ in found if said in _] == [path], found


ON_BATCH = """\
serviceAccount: trainer@acme-ml-prod.iam.gserviceaccount.com
scheduling: {timeout: 600s}
workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    containerSpec: {imageUri: us-docker.pkg.dev/acme-ml-prod/x/y:1, command: [sleep, "9"]}
"""


def test_a_job_is_sent_with_its_notifications(tmp_path):
    changes = {
        "channels": BUS,
        "buckets": {"out": {}},
        "serviceAccounts": {"trainer": {}},
        "jobs": {
            key: {"file": f"jobs/{key}.yaml", "backend": "batch"} for key in ("loud", "silent")
        },
    }
    changes["jobs"]["loud"]["messages"] = {"channel": "bus"}
    (tmp_path / "jobs").mkdir()
    for key in changes["jobs"]:
        (tmp_path / f"jobs/{key}.yaml").write_text(ON_BATCH)
    loaded = Stack(read_settings(BASE | changes, tmp_path), tmp_path, {})
    sent = {key: each.request.notifications for key, each in loaded.check_jobs().items()}
    told = {"pubsubTopic": BUS["bus"]["pubsub"], "message": {"type": "JOB_STATE_CHANGED"}}
    assert sent == {"loud": (told,), "silent": ()}


def test_who_must_be_let_into_a_topic_is_said_once_each(monkeypatch):
    said = []
    monkeypatch.setattr("pulumi.log.info", said.append)

    def request(topic, account="trainer@acme-ml-prod.iam.gserviceaccount.com"):
        return SimpleNamespace(account=account, notifications=[{"pubsubTopic": topic}] * 2)

    own, others = (f"projects/{each}/topics/states" for each in ("acme-ml-prod", "acme-bus"))
    both = {"a": request(own), "b": request(own), "c": request(others)}
    log_publishers(stack(), both)
    members = [
        (line.split("--project=")[1].split()[0], line.split("serviceAccount:")[1].split("@")[0])
        for line in said
    ]
    assert members == [
        ("acme-ml-prod", "trainer"), ("acme-bus", "trainer"), ("acme-bus", "service-109876543210"),
    ]  # fmt: skip
    assert all(line.endswith(" --role=roles/pubsub.publisher") for line in said)
    log_publishers(stack(), {"x": SimpleNamespace(account="a", notifications=())})
    assert len(said) == 3
