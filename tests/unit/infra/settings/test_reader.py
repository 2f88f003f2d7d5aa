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


@pytest.fixture
def engine_config(monkeypatch):
    """Gives the SDK a config, as the engine does."""

    def give(values, encrypted=()):
        pulumi.runtime.set_all_config(values, list(encrypted))

    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
    yield give
    pulumi.runtime.set_all_config({}, [])


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
