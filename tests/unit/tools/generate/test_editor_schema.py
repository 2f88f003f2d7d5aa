"""The schema editors use: current, and never stricter than the checker."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.fixture_project import SAMPLE_JOBS, sample
from tests.unit.infra.customjob.rules.tuning_cases import RIGHT as TUNING
from tools.generate import editor_schema

ROOT = Path(__file__).parents[4]
SCHEMA = json.loads(editor_schema.TARGET.read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
RIGHT = sorted((ROOT / "tests" / "corpus" / "right").glob("*.yaml"))
FIRST_LINE = "# yaml-language-server: $schema=job.schema.json"


def mistakes(text):
    return [error.message for error in VALIDATOR.iter_errors(yaml.safe_load(text))]


def test_the_schema_is_current():
    assert editor_schema.TARGET.read_text() == editor_schema.generate()


def test_the_schema_is_a_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", SAMPLE_JOBS)
def test_every_job_file_names_the_schema_and_is_valid(name):
    text = sample(f"{name}.yaml").read_text()
    assert text.splitlines()[0] == FIRST_LINE
    assert mistakes(text) == []


@pytest.mark.parametrize("file", RIGHT, ids=lambda file: file.stem)
def test_what_the_checker_accepts_is_valid(file):
    assert mistakes(file.read_text()) == []


def test_a_tuning_file_is_valid():
    assert mistakes(TUNING) == []


@pytest.mark.parametrize(
    "text",
    [
        TUNING.replace("goal: MAXIMIZE", "goal: MAX"),
        TUNING.replace("maxTrialCount: 60", "maxTrialCount: 0"),
        TUNING.replace("maxTrialCount: 60\n", ""),
        TUNING.replace("trialJobSpec", "jobSpec"),
        TUNING.replace("n1-standard-4", "n1-standart-4"),
        TUNING.replace("- parameterId: layers", "- parameter: layers"),
        "{serviceAccount: trainer, workerPoolSpecs: []}",
        "{encryptionSpec: {kmsKeyName: k}, jobSpec: {}}",
        "workerPoolSpecs: [{replicaCount: 0}]",
        "workerPoolSpecs: [{diskSpec: {bootDiskType: pd-balanced}}]",
        "workerPoolSpecs: [{diskSpec: {bootDiskSizeGb: 10}}]",
        "{labels: {Team: x}, jobSpec: {}}",
        "workerPoolSpec: []",
        "workerPoolSpecs: [{machineSpec: {machineType: n1-standart-4}}]",
        "workerPoolSpecs: [{containerSpec: {}, pythonPackageSpec: {}}]",
        "{workerPoolSpecs: [], scheduling: {timeout: 24h}}",
        "{workerPoolSpecs: [], scheduling: {strategy: spot}}",
        "{workerPoolSpecs: [], enableWebAccess: 'yes'}",
        "{workerPoolSpecs: [], displayName: x}",
        "{displayName: x, jobSpec: {workerPoolSpecs: [{network: x}]}}",
        "{workerPoolSpecs: [], baseOutputDirectory: {outputUriPrefix: /gcs/x}}",
        "workerPoolSpecs: [{machineSpec: {machineType: g2-standard-4}}]",
        "workerPoolSpecs: [{machineSpec: {machineType: a2-highgpu-8g, "
        "acceleratorType: NVIDIA_TESLA_A100, acceleratorCount: 4}}]",
    ],
)
def test_an_editor_sees_mistakes_of_shape(text):
    assert mistakes(text)


def test_every_field_is_documented():
    for name, schema in SCHEMA["definitions"].items():
        for key, field in schema.get("properties", {}).items():
            if not field.get("doNotSuggest"):
                assert len(field["description"]) > len(key), f"{name}.{key}"


def with_patterns(schema, place=""):
    """Every part of the schema that has a pattern, with its place."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield place, schema
        for key, value in schema.items():
            yield from with_patterns(value, f"{place}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from with_patterns(value, f"{place}/{index}")


def test_where_a_pattern_does_not_match_an_editor_says_why_in_words():
    found = list(with_patterns(SCHEMA))
    assert len(found) > 50
    for place, schema in found:
        words = schema.get("errorMessage", "")
        assert len(words.split()) >= 2, place
        assert not set(words) & set("^|*?[]\\"), place


def test_the_words_of_a_field_name_a_form_that_the_field_takes():
    wrong = "serviceAccount: not an address\nworkerPoolSpecs: []\n"
    [error] = [e for e in VALIDATOR.iter_errors(yaml.safe_load(wrong)) if e.path]
    [deep] = [e for e in [error, *error.context] if e.validator == "pattern"] or [error]
    assert "trainer@PROJECT.iam.gserviceaccount.com" in deep.schema["errorMessage"]
