"""What is generated of stack files' models: current, and the schema accepts what is right."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.fixture_project import PROJECT
from tools.generate import component_args, stack_file
from vertex_training.components.sections import docs_of

TRAINING, BOOTSTRAP = stack_file.PROJECTS
VALIDATORS = {
    project: jsonschema.Draft7Validator(json.loads(project.editor_schema()))
    for project in stack_file.PROJECTS
}
FILES = [
    *((TRAINING, file) for file in sorted(PROJECT.glob("Pulumi.*.yaml"))),
    *((BOOTSTRAP, file) for file in sorted(PROJECT.glob("bootstrap/Pulumi.*.yaml"))),
]
RIGHT = """\
gcp:project: acme-vision
gcp:region: us-central1
gcp:disableGlobalProjectWarning: "true"
acme:key: value
vertex-training:projectNumber: 210987654321
vertex-training:sharedVpc: {}
vertex-training:buckets: {data: {deleteAfterDays: null, retention: {days: 3}}}
"""


def mistakes(project, config):
    document = {"config": yaml.safe_load(config)}
    return [error.message for error in VALIDATORS[project].iter_errors(document)]


@pytest.mark.parametrize(
    "target", stack_file.TARGETS, ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_what_is_generated_is_current(target: Path):
    assert target.read_text() == stack_file.TARGETS[target](), "python -m tools.generate.stack_file"


def test_arguments_of_components_are_current():
    assert component_args.TARGET.read_text() == component_args.generate()


@pytest.mark.parametrize("project", stack_file.PROJECTS, ids=lambda project: project.title)
def test_every_field_says_what_it_is(project):
    for section in (project.schema.model, *project.paths):
        assert [*section.model_fields] == [
            name for name in section.model_fields if docs_of(section).get(name)
        ]
    jsonschema.Draft7Validator.check_schema(json.loads(project.editor_schema()))


@pytest.mark.parametrize(("project", "file"), FILES, ids=lambda value: getattr(value, "stem", ""))
def test_a_stack_file_that_is_right_is_valid_in_an_editor(project, file):
    assert [
        error.message for error in VALIDATORS[project].iter_errors(yaml.safe_load(file.read_text()))
    ] == []


def test_keys_of_others_and_what_may_be_absent_are_valid():
    assert mistakes(TRAINING, RIGHT) == []


@pytest.mark.parametrize(
    "config",
    [
        "vertex-training:bucket: {}",
        "vertex-training:buckets: [data]",
        "vertex-training:buckets: {Data: {}}",
        "vertex-training:buckets: {data: {storageClas: ARCHIVE}}",
        "vertex-training:buckets: {data: {storageClass: COLD}}",
        "vertex-training:buckets: {data: {retention: {days: 0}}}",
        "vertex-training:serviceAccounts: {trainer: {roles: {acme-vision: [owner]}}}",
        "vertex-training:jobs: {one: {run: 2}}",
        "vertex-training:onChange: wait",
        "vertex-training:include: [../shared.yaml]",
        "vertex-training:reservations: {a: {zone: us-central1, machineType: m, count: 1}}",
        "gcp:region: europe",
    ],
)
def test_an_editor_sees_mistakes_of_shape(config):
    assert mistakes(TRAINING, config)
