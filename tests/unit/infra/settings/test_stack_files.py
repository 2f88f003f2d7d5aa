"""A stack read from its files means what the engine would hand to the program."""

import pytest

from vertex_training import stack
from vertex_training.errors import ConfigError, Location, Problem, UnknownStackError
from vertex_training.settings import stack_files

PROJECT = """\
name: vertex-training
runtime: python
config:
  vertex-training:labels: {type: object, default: {team: ml}}
  vertex-training:projectNumber: {type: string}
  gcp:region: {value: us-central1}
"""
STACK = """\
config:
  gcp:project: acme-ml-dev
  vertex-training:projectNumber: 210987654321
  vertex-training:buckets:
    data: {}
  pulumi:tags: {owner: ml}
"""


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "Pulumi.yaml").write_text(PROJECT)
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    return tmp_path


@pytest.mark.parametrize("name", ["prod", "../dev", ""])
def test_a_stack_without_a_file_is_not_guessed(checkout, name):
    with pytest.raises(UnknownStackError, match="existing stacks: dev"):
        stack.load(checkout, name)


@pytest.mark.parametrize(
    "line",
    [
        "stackConfigDir: config", 'stackConfigDir : "./config/" # ours', '"stackConfigDir": config',
        '"stack\\u0043onfigDir": config', "? stackConfigDir\n: config", "config: config",
    ],
)  # fmt: skip
def test_stack_files_that_the_engine_reads_elsewhere_are_refused(checkout, line):
    project = PROJECT.partition("config:")[0]
    (checkout / "Pulumi.yaml").write_text(f"{project}{line}\n")
    with pytest.raises(UnknownStackError, match=r"stackConfigDir of Pulumi\.yaml: .*onfig"):
        stack.load(checkout, "dev")
    given = (stack.SCHEMA, checkout, "dev", "vertex-training", {}, (), ())
    with pytest.raises(ConfigError, match="stackConfigDir"):  # the program, under the engine
        stack_files.complete(*given)


def test_a_project_in_json_which_the_engine_reads_in_place_of_ours_is_refused(checkout):
    (checkout / "Pulumi.json").write_text('{"name": "x", "runtime": "python", "main": "elsewhere"}')
    with pytest.raises(UnknownStackError, match=r"^Pulumi\.json: the engine reads Pulumi"):
        stack.load(checkout, "dev")
    given = (stack.SCHEMA, checkout, "dev", "vertex-training", {}, (), ())
    with pytest.raises(ConfigError, match=r"^Pulumi\.json: the engine reads Pulumi"):
        stack_files.complete(*given)


def test_dates_and_bytes_of_yaml_are_the_text_that_the_engine_makes_of_them(checkout):
    """Measured with 3.259.0: its language has no dates in JSON."""
    own = "  vertex-training:day: 2026-01-31\n  vertex-training:raw: !!binary aGVsbG8=\n"
    own += "  vertex-training:map: {day: 2026-01-31, raw: !!binary aGVsbG8=}\n"
    own += "  vertex-training:set: !!set {c, a, b}\n"
    (checkout / "Pulumi.dev.yaml").write_text(STACK + own)
    found, _ = stack_files.engine_config("vertex-training", checkout, "dev", "")
    day = "2026-01-31 00:00:00 +0000 UTC"
    assert found["vertex-training:day"] == day
    assert found["vertex-training:raw"] == "hello"
    assert found["vertex-training:set"] == '{"a": null, "b": null, "c": null}'
    assert found["vertex-training:map"] == f'{{"day": "{day}", "raw": "hello"}}'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (None, None),
        ("config: [\n", None),
        ("config: {}\n", None),
        ("environment:\nconfig: {}\n", None),
        ("environment: []\nconfig: {}\n", None),
        ("config: {}\nenvironment:\n- prod\n", Location("Pulumi.dev.yaml", 2, 1)),
    ],
)
def test_values_of_environments_are_reported_as_unchecked(tmp_path, text, place):
    if text:
        (tmp_path / "Pulumi.dev.yaml").write_text(text)
    what = "values from Pulumi ESC environments were not checked, since only the engine reads them"
    hint = "write values of jobs and resources below config"
    told = Problem(what, "", hint, ("environment",), place, level="warning") if place else None
    assert stack_files.unread(tmp_path / "Pulumi.dev.yaml") == ([told] if told else [])
