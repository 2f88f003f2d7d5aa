import copy
import re
from importlib.resources import files

import pulumi
import pytest

from vertex_training import engine
from vertex_training.errors import ConfigError
from vertex_training.settings import reader
from vertex_training.stack import SCHEMA, load, read_settings

STACK = {
    "stack": "dev",
    "project": "acme-ml-dev",
    "region": "us-central1",
    "projectNumber": "210987654321",
    "buckets": {"data": {"objects": {"a.npz": "a.npz"}}, "artifacts": {}},
    "secrets": {"wandb": {}},
    "serviceAccounts": {"trainer": {"reads": ["data"], "writes": ["artifacts"]}},
    "packages": {"code": {"path": "code"}},
    "jobs": {"train": {"file": "train.yaml", "run": 2}},
}


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "a.npz").touch()
    (tmp_path / "train.yaml").touch()
    (tmp_path / "code").mkdir()
    return tmp_path


def problems(checkout, **changes):
    raw = copy.deepcopy(STACK) | changes
    with pytest.raises(ConfigError) as failed:
        read_settings(raw, checkout)
    return [str(problem) for problem in failed.value.problems]


def test_a_complete_stack_is_read(checkout):
    settings = read_settings(STACK, checkout)
    assert settings.jobs["train"].run == 2
    assert settings.jobs["train"].on_delete == "keep"
    assert settings.buckets["data"].versioning
    assert not settings.is_local


def test_all_mistakes_are_told_at_once(checkout):
    told = problems(
        checkout,
        region="us",
        projectNumber="my-project",
        jobs={"train": {"file": "train.yaml", "run": 0}},
    )
    assert [line.split(": ")[1] for line in told] == [
        "gcp:region",
        "vertex-training:projectNumber",
        "vertex-training:jobs.train.run",
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"serviceAccounts": {"trainer": {"reads": ["dat"]}}}, "did you mean 'data'?"),
        ({"serviceAccounts": {"trainer": {"secrets": ["wand"]}}}, "did you mean 'wandb'?"),
        ({"serviceAccounts": {"a": {}}}, "6 to 30 characters"),
        ({"buckets": {"staging": {}, "data": {}, "artifacts": {}}}, "makes this bucket itself"),
        ({"labels": {"Team": "ml"}}, "label key 'Team'"),
        ({"submitters": ["someone@example.com"]}, "not an IAM member"),
        ({"jobs": {"train": {"file": "none.yaml"}}}, "no such file (got none.yaml)"),
        ({"jobs": {"train": {"file": "../x.yaml"}}}, "lies outside of the checkout"),
        ({"packages": {"code": {"path": "cod"}}}, "no such file (got cod)"),
        ({"images": {"x": {}}}, "give context, digest or uri"),
        ({"images": {"x": {"context": "code"}}}, "has no Dockerfile"),
        ({"images": {"x": {"context": "nowhere"}}}, "no such file (got nowhere)"),
        ({"images": {"x": {"context": ".."}}}, "lies outside of the checkout"),
        ({"buckets": {"data": {"softDeleteDays": 3}, "artifacts": {}}}, "0 (off) or 7 to 90"),
        ({"serviceAccounts": {"Trainer": {}}}, "a name here must be lowercase letters"),
    ],
)
def test_mistakes_across_keys_are_found(checkout, changes, expected):
    told = problems(checkout, **changes)
    assert len(told) == 1
    assert expected in told[0]


def test_numbers_in_text_keys_stay_text(checkout, monkeypatch):
    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
    pulumi.runtime.set_all_config(
        {
            "vertex-training:projectNumber": "012",
            "vertex-training:buckets": '{"data": {}}',
            "pulumi:tags": "z",
        }
    )
    try:
        assert engine.read_config(SCHEMA, checkout) == {
            "stack": "dev",
            "projectNumber": "012",
            "buckets": {"data": {}},
        }
    finally:
        pulumi.runtime.set_all_config({})


@pytest.mark.parametrize(
    ("job", "seconds"),
    [
        ({"wait": "running"}, 3600),
        ({"wait": "succeeded", "deadline": "90s"}, 90),
        ({"wait": "succeeded", "deadline": "30m"}, 1800),
        ({"wait": "succeeded", "deadline": "2d"}, 172800),
    ],
)
def test_a_job_may_be_waited_for_within_a_deadline(checkout, job, seconds):
    settings = read_settings(STACK | {"jobs": {"train": {"file": "train.yaml"} | job}}, checkout)
    assert settings.jobs["train"].deadline_seconds == seconds


def test_a_wait_that_cannot_be_meant_is_refused(checkout):
    told = problems(
        checkout,
        jobs={
            "a": {"file": "train.yaml", "wait": "done"},
            "b": {"file": "train.yaml", "deadline": "1h"},
            "c": {"file": "train.yaml", "wait": "running", "deadline": "1 hour"},
        },
    )
    assert len(told) == 3
    assert "jobs.a.wait" in told[0]
    assert "wait is not set" in told[1]
    assert "jobs.c.deadline: must look like 90s, 30m, 2h or 1d" in told[2]


def test_an_encrypted_value_is_refused_and_never_shown(checkout, monkeypatch):
    values = {
        "gcp:project": "acme-ml-dev",
        "gcp:region": "us-central1",
        "vertex-training:projectNumber": "hunter2",
        "vertex-training:labels": '{"team": "hunter2"}',
    }
    encrypted = ["vertex-training:projectNumber", "vertex-training:labels"]
    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
    pulumi.runtime.set_all_config(values, encrypted)
    try:
        with pytest.raises(ConfigError) as failed:
            engine.read_config(SCHEMA, checkout)
    finally:
        pulumi.runtime.set_all_config({}, [])
    told = failed.value.report()
    assert told.count("is encrypted") == 2
    assert "hunter2" not in told


@pytest.fixture
def engine_config(monkeypatch):
    """Gives the SDK a config, as the engine does."""

    def give(values, encrypted=()):
        pulumi.runtime.set_all_config(values, list(encrypted))

    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
    yield give
    pulumi.runtime.set_all_config({}, [])


@pytest.mark.parametrize("key", ["project", "region", "stack"])
def test_a_key_of_the_provider_cannot_be_replaced_below_the_namespace(checkout, engine_config, key):
    engine_config({"gcp:project": "acme-ml-dev", f"vertex-training:{key}": "local-x"})
    with pytest.raises(ConfigError, match=f"vertex-training:{key}: unknown key"):
        read_settings(engine.read_config(SCHEMA, checkout), checkout)
    (checkout / "Pulumi.dev.yaml").write_text(
        f"config:\n  gcp:project: acme-ml-dev\n  vertex-training:{key}: local-x\n"
    )
    with pytest.raises(ConfigError, match=f"Pulumi.dev.yaml:3:3: vertex-training:{key}: unknown"):
        load(checkout, "dev")


def test_an_encrypted_value_of_the_provider_is_refused_and_never_shown(checkout, engine_config):
    engine_config({"gcp:project": "hunter2!"}, ["gcp:project"])
    with pytest.raises(ConfigError) as failed:
        engine.read_config(SCHEMA, checkout)
    assert "gcp:project: is encrypted" in str(failed.value)
    assert "hunter2" not in failed.value.report()


@pytest.mark.parametrize("value", ["{secure: AAABcipher}", "{team: {secure: AAABcipher}}"])
def test_an_encrypted_value_is_refused_without_an_engine_too(checkout, value):
    (checkout / "Pulumi.dev.yaml").write_text(
        f"config:\n  gcp:project: acme-ml-dev\n  vertex-training:labels: {value}\n"
    )
    with pytest.raises(ConfigError) as failed:
        load(checkout, "dev")
    [problem] = failed.value.problems
    assert str(problem).startswith("Pulumi.dev.yaml:3:3: vertex-training:labels: is encrypted")
    assert "cipher" not in failed.value.report()


def test_keys_that_yaml_takes_for_numbers_keep_their_place(checkout):
    (checkout / "Pulumi.dev.yaml").write_text(
        "config:\n  gcp:project: acme-ml-dev\n  gcp:region: us-central1\n"
        "  vertex-training:projectNumber: 210987654321\n"
        "  vertex-training:buckets:\n    2024: {}\n"
    )
    with pytest.raises(ConfigError) as failed:
        load(checkout, "dev")
    assert str(failed.value).startswith(
        "Pulumi.dev.yaml:6:5: vertex-training:buckets.2024: a name here must be"
    )


def test_every_key_of_the_provider_is_known_and_no_other():
    file = files("pulumi_gcp") / "config" / "vars.py"
    keys = set(re.findall(r"__config__\.get\w*\('(\w+)'\)", file.read_text()))
    known = {*reader.PROVIDER_KEYS, *reader.IDENTITY_KEYS, *reader.OTHER_PROVIDER_KEYS}
    assert {key for key in keys if not key.endswith(reader.ENDPOINT)} == known
