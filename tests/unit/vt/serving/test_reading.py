"""Which clients read models and endpoints, what is asked of them, and what a refusal becomes."""

from __future__ import annotations

from typing import Any

import pytest
from google.auth.exceptions import DefaultCredentialsError
from google.cloud.aiplatform_v1.services import prediction_service

from vertex_training.errors import OperatorError
from vertex_training_cli.serving import service

DNS = "7.us-central1-1.prediction.vertexai.goog"


def test_without_credentials_it_says_how_to_sign_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise DefaultCredentialsError("none")

    monkeypatch.setattr(service, "impersonated_credentials", lambda _: None)
    monkeypatch.setattr(prediction_service, "PredictionServiceClient", refuse)
    with pytest.raises(OperatorError) as failed:
        service.client("acme", "us-central1", "prediction", DNS)
    assert "gcloud auth application-default login" in str(failed.value)
