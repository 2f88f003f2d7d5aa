"""The schema that other languages see, and the examples' length."""

import json
import os
import subprocess

import pytest

from tests.conftest import ROOT
from tests.languages.story import EXAMPLES, PLUGIN
from vertex_training.host import Host

GOLDEN = ROOT / "tests" / "languages" / "schema.json"


def shape(schema):
    """Names of all that a program writes; the engine sorts and spells the rest in its own way."""
    lists = ("inputProperties", "requiredInputs", "properties")
    both = {**schema["resources"], **schema["types"]}
    return {token: [sorted(each.get(name, ())) for name in lists] for token, each in both.items()}


def test_it_is_the_recorded_one():
    schema = json.loads(Host().schema or "")
    text = json.dumps(schema, indent=1, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    hint = "UPDATE_GOLDEN=1 pytest tests/languages/test_schema.py, and say it in the changelog"
    assert text == GOLDEN.read_text(), hint


def test_the_engine_reads_it_from_the_plugin(tmp_path):
    bin_ = ROOT / ".venv" / "bin"
    environment = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
    command = ["pulumi", "package", "get-schema", str(bin_ / PLUGIN)]
    done = subprocess.run(command, capture_output=True, check=True, env=environment, cwd=tmp_path)
    schema = json.loads(done.stdout)
    assert shape(schema) == shape(json.loads(GOLDEN.read_text()))
    assert all(schema[key] for key in ("publisher", "homepage", "logoUrl"))


def test_every_property_has_a_text():
    schema = json.loads(GOLDEN.read_text())
    bare = [
        f"{token}.{name}"
        for token, each in {**schema["resources"], **schema["types"]}.items()
        for kind in ("inputProperties", "properties")
        for name, field in (each.get(kind) or {}).items()
        if not field.get("description")
    ]
    assert bare == []


def test_words_to_choose_from_are_enums():
    schema = json.loads(GOLDEN.read_text())
    inputs = schema["resources"]["vertex-training:index:TrainingJob"]["inputProperties"]
    assert inputs["wait"]["$ref"] == "#/types/vertex-training:index:Wait"
    wait = schema["types"]["vertex-training:index:Wait"]
    assert [each["value"] for each in wait["enum"]] == ["running", "succeeded"]


def test_it_is_not_published_under_the_name_of_pulumi():
    schema = json.loads(GOLDEN.read_text())
    assert schema["namespace"] == "vertextraining"
    assert all(schema[key] for key in ("description", "license", "keywords"))


def test_it_names_no_address_that_nobody_owns():
    """Decision 79: such a one is whose who registers it first."""
    schema = json.loads(GOLDEN.read_text())
    assert not {"pluginDownloadURL", "repository"} & set(schema)
    assert schema["homepage"].startswith("https://docs.cloud.google.com/")
    assert schema["logoUrl"].startswith("data:")


def test_no_description_has_the_syntax_of_python():
    text = GOLDEN.read_text()
    assert "Example::" not in text
    assert "``" not in text
    assert ":class:" not in text


@pytest.mark.parametrize("file", ["python/__main__.py", "typescript/index.ts", "yaml/Pulumi.yaml"])
def test_an_example_has_at_most_thirty_lines(file):
    assert len((EXAMPLES / file).read_text().splitlines()) <= 30
