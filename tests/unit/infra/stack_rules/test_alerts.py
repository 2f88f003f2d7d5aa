"""The sections on who is told of what: what they refuse, and what is made of them."""

import json
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
import yaml
from google.cloud import batch_v1

from tests.unit.infra.recorder import registered
from tests.unit.infra.stacks import BASE, refused, rows, stack
from vertex_training.components.monitoring import log_publishers
from vertex_training.plan import monitoring
from vertex_training.settings.alerts import JobState, TaskState
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
        ({"existing": "1234567890"}, "must look like"),
        ({"slack": "xoxb-1"}, "slack"),
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


@pytest.mark.parametrize("project", ["acme-ml-prod", "109876543210"])
def test_a_channel_of_the_project_is_taken_by_id_and_by_number(project):
    channel = {"existing": f"projects/{project}/notificationChannels/12"}
    assert stack(channels={"slack": channel}).channels["slack"].existing


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"channels": [], "failed": True}, "channels"),
        ({"channels": ["oncall"]}, "tells nothing"),
        ({"channels": ["oncal"], "failed": True}, "did you mean 'oncall'"),
        ({"channels": ["oncall", "oncall"], "failed": True}, "named twice"),
        ({"channels": ["oncall"], "gpuIdleBelow": "5%"}, "5% for 30m"),
        ({"channels": ["oncall"], "gpuIdleBelow": "0% for 30m"}, "5% for 30m"),
        ({"channels": ["oncall"], "gpuIdleBelow": "100% for 30m"}, "5% for 30m"),
        ({"channels": ["oncall"], "gpuIdleBelow": "5% for 24h"}, "23h30m"),
        ({"channels": ["oncall"], "gpuIdleBelow": '5% for 30m" OR "'}, "5% for 30m"),
        (FAILED | {"pendingLongerThan": "2h"}, "no metric and no log"),
        (FAILED | {"overdue": True}, "no alert could fire"),
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
        ({"thresholds": [80, 50]}, "must ascend"),
        ({"thresholds": [50, 50]}, "must ascend"),
        ({"thresholds": [0.5]}, "thresholds[0]"),
        ({"usdPerMonth": 0}, "usdPerMonth"),
        ({"usdPerMonth": -1}, "usdPerMonth"),
        ({"billingAccount": "billingAccounts/012345-6789AB-CDEF01"}, "012345-6789AB-CDEF01"),
        ({"channels": ["bus"]}, "addresses alone"),
        ({"channels": ["nobody"]}, "no such channel"),
    ],
)
def test_a_budget_that_google_would_refuse_is_refused(given, said):
    channels = ONCALL | {"bus": {"pubsub": "projects/acme-ml-prod/topics/alerts"}}
    assert any(said in " ".join(each) for each in refused(channels=channels, budget=BUDGET | given))


def test_a_budget_has_five_channels_and_no_sixth():
    channels = {f"c{number}": {"email": f"c{number}@example.com"} for number in range(6)}
    assert stack(channels=channels, budget=BUDGET | {"channels": [*channels][:5]}).budget
    [(path, said)] = refused(channels=channels, budget=BUDGET | {"channels": [*channels]})
    assert path == "budget.channels"
    assert "5" in said


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


def all_of_it(stack):
    project = f"acme-ml-{stack}"
    return {
        "channels": ONCALL
        | {"bus": {"pubsub": f"projects/{project}/topics/alerts"}}
        | {"slack": {"existing": f"projects/{project}/notificationChannels/123"}},
        "alerts": {"channels": ["oncall", "slack"], "failed": True, "gpuIdleBelow": "5% for 2h"},
        "budget": BUDGET | {"channels": ["oncall"]},
        "dashboards": {"training": {}, "gpus": {"title": 'G"}', "panels": ["accelerator"]}},
    }


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_what_is_made_of_it(name):
    made = registered(name, **all_of_it(name))
    found = {key.removeprefix("monitoring-"): inputs for key, (_, inputs) in made.items()}
    failed, idle, budget = found["failed"], found["gpu-idle"], found["budget"]

    [condition] = failed["conditions"]
    assert condition["conditionMatchedLog"] == {
        "filter": 'resource.type="ml_job" AND resource.labels.task_name="service" '
        'AND textPayload="Job failed."',
        "labelExtractors": {"job_id": "EXTRACT(resource.labels.job_id)"},
    }
    assert failed["alertStrategy"]["notificationRateLimit"] == {"period": "300s"}
    assert failed["notificationChannels"][1].endswith("/notificationChannels/123")
    show = f"vt jobs show ${{log.extracted_label.job_id}} --stack {name}"
    assert show in failed["documentation"]["content"]
    assert failed["displayName"] == f"A job failed ({name})"

    [condition] = idle["conditions"]
    limit = condition["conditionThreshold"]
    assert (limit["comparison"], limit["thresholdValue"]) == ("COMPARISON_LT", 0.05)
    assert limit["duration"] == "7200s"
    assert "accelerator/utilization" in limit["filter"]
    assert "notificationRateLimit" not in idle["alertStrategy"]

    number = {"dev": "210987654321", "prod": "109876543210"}[name]
    assert budget["budgetFilter"]["projects"] == [f"projects/{number}"]
    assert [rule["thresholdPercent"] for rule in budget["thresholdRules"]] == [0.5, 0.8, 1.0]
    assert budget["amount"]["specifiedAmount"] == {"currencyCode": "USD", "units": "2000"}
    apis = {f"apis-{api}" for api in ("monitoring", "logging", "billingbudgets")}
    assert apis <= made.keys()
    assert "sensitiveLabels" not in json.dumps([*found.values()], default=str)


def test_a_stack_without_it_has_none_of_it():
    made = registered("dev")
    assert not [name for name in made if name.startswith("monitoring")]
    assert "apis-monitoring" not in made


def charts(**given):
    settings = stack(dashboards={"gpus": given})
    return json.loads(monitoring.dashboard_json(settings, "gpus", settings.dashboards["gpus"]))


def test_a_dashboard_has_its_panels_and_says_what_is_missing():
    page = charts(title='G"}, {"', panels=["network", "ends"])
    assert page["displayName"] == 'G"}, {"'
    network, ends, missing = [tile["widget"] for tile in page["mosaicLayout"]["tiles"]]
    assert len(network["xyChart"]["dataSets"]) == 2
    assert ends["logsPanel"]["resourceNames"] == ["projects/acme-ml-prod"]
    for word in ("costs", "queued", "state"):
        assert word in missing["text"]["content"]


def test_no_two_tiles_of_a_dashboard_overlap_or_leave_it():
    tiles = charts()["mosaicLayout"]["tiles"]
    places = {(each["xPos"], each["yPos"]) for each in tiles}
    assert len(places) == len(tiles) == 7
    assert all(each["xPos"] + each["width"] <= 48 for each in tiles)


def fields_of(schemas, name, value, path="dashboard"):
    """Every field of a JSON message is one of the description's; every word one of its enum."""
    properties = schemas[name]["properties"]
    for key, found in value.items():
        assert key in properties, f"{path}.{key} is no field of {name}"
        of = properties[key]
        of_items = of.get("items", of)
        for each in found if isinstance(found, list) else [found]:
            if "enum" in of_items:
                assert each in of_items["enum"], f"{path}.{key}"
            if isinstance(each, dict) and "$ref" in of_items:
                fields_of(schemas, of_items["$ref"], each, f"{path}.{key}")


def test_a_dashboard_is_a_message_of_the_api():
    documents = files("googleapiclient.discovery_cache") / "documents"
    api = json.loads((documents / "monitoring.v1.json").read_text())
    fields_of(api["schemas"], "Dashboard", charts())


BUS = {"bus": {"pubsub": "projects/acme-ml-prod/topics/states"}}


def in_folder(folder, **changes):
    """The small stack, beside a job file."""
    (folder / "jobs").mkdir(exist_ok=True)
    (folder / "jobs/titanic.yaml").touch()
    return read_settings(BASE | changes, folder)


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
        (
            {"titanic": {**on_batch(channel="bus")["titanic"], "backend": "vertex"}},
            "jobs.titanic",
            "written by Batch alone",
        ),
    ],
)
def test_messages_that_batch_would_not_write_are_refused(jobs, path, said):
    found = refused(channels=ONCALL | BUS, jobs=jobs)
    assert [where for where, _ in found if said in _] == [path], found


def test_messages_become_notifications_each_with_one_condition(tmp_path):
    told = in_folder(tmp_path, channels=BUS, jobs=on_batch(channel="bus"))
    topic = BUS["bus"]["pubsub"]
    assert told.notifications("titanic") == (
        {"pubsubTopic": topic, "message": {"type": "JOB_STATE_CHANGED"}},
    )
    named = in_folder(
        tmp_path,
        channels=BUS,
        jobs=on_batch(channel="bus", jobStates=["FAILED"], taskStates=["FAILED"]),
    )
    assert [each["message"] for each in named.notifications("titanic")] == [
        {"type": "JOB_STATE_CHANGED", "newJobState": "FAILED"},
        {"type": "TASK_STATE_CHANGED", "newTaskState": "FAILED"},
    ]
    assert set(get_args(JobState)) == set(batch_v1.JobStatus.State.__members__) - {
        "STATE_UNSPECIFIED"
    }
    assert set(get_args(TaskState)) == set(batch_v1.TaskStatus.State.__members__) - {
        "STATE_UNSPECIFIED"
    }


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


def test_a_topic_that_batch_alone_writes_to_is_no_channel_of_cloud_monitoring(tmp_path):
    alone = in_folder(tmp_path, channels=BUS, jobs=on_batch(channel="bus"))
    assert (alone.alert_channels, alone.is_watched) == ({}, False)
    both = in_folder(
        tmp_path,
        channels=BUS,
        jobs=on_batch(channel="bus"),
        alerts={"channels": ["bus"], "failed": True},
    )
    assert set(both.alert_channels) == {"bus"}
    assert [*alerts.warnings(alone, NOWHERE)] == []


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
