"""docs/architecture.md names what states and records hold, as the code writes it."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.fixture_project import ROOT
from vertex_training import host
from vertex_training.customjob.google import intent_store
from vertex_training.customjob.kinds import TUNING_JOB
from vertex_training.customjob.protocol.ports import JOB_LABELS
from vertex_training.customjob.provider import CustomJobProvider
from vertex_training.serving.declared import ENDPOINT_LABEL, MODEL_LABEL
from vertex_training.serving.provider import DeployedModelsProvider, ModelVersionProvider

PAGE: Final = (ROOT / "docs" / "architecture.md").read_text()
TYPE: Final = re.compile(r'"(vertextraining:[\w:]+)"')
INFRA: Final = ROOT / "infra" / "vertex_training"


def test_the_page_has_every_type_of_a_component_and_no_other() -> None:
    components = (INFRA / "components").rglob("*.py")
    files = (*INFRA.glob("*.py"), *components, INFRA / "plan" / "grants.py")
    declared = [found for file in files for found in TYPE.findall(file.read_text())]
    assert sorted(declared) == re.findall(r"^\| `(vertextraining:[\w:]+)` \|", PAGE, re.MULTILINE)
    assert len(declared) == len(set(declared))


def test_the_page_has_every_component_of_the_package() -> None:
    files = (*INFRA.glob("*.py"), *(INFRA / "components").rglob("*.py"))
    pattern = re.compile(r'__init__\("(vertex-training:index:\w+)"')
    declared = [found for file in files for found in pattern.findall(file.read_text())]
    pattern = re.compile(r"^\| `(vertex-training:index:\w+)` \|", re.MULTILINE)
    assert sorted(declared) == pattern.findall(PAGE)
    assert len(declared) == len(host.COMPONENTS)


def test_the_provider_has_the_place_that_states_name() -> None:
    assert f"class `{CustomJobProvider.__qualname__}`" in PAGE
    assert f"`{CustomJobProvider.__module__}`" in PAGE
    assert CustomJobProvider.__module__ == "vertex_training.customjob.provider"


@pytest.mark.parametrize("provider", [ModelVersionProvider, DeployedModelsProvider])
def test_those_of_models_have_theirs(provider: type) -> None:
    assert f"`{provider.__qualname__}`" in PAGE
    assert provider.__module__ == "vertex_training.serving.provider"


@pytest.mark.parametrize("label", [*JOB_LABELS, MODEL_LABEL, ENDPOINT_LABEL])
def test_the_page_has_every_label(label: str) -> None:
    assert f"`{label}`" in PAGE


def test_the_page_has_the_form_of_the_records() -> None:
    assert f'`"format": {intent_store.FORMAT}`' in PAGE
    assert f"`{intent_store.TURNS}REGION/JOB.json`" in PAGE
    assert f"folder `{TUNING_JOB.records}`" in PAGE
