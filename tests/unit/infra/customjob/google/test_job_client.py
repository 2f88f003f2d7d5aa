"""Which service the official client is made for."""

from vertex_training.customjob.google import job_service, vertex_api


def test_a_project_of_google_meets_the_service_of_its_region(monkeypatch):
    made = []
    monkeypatch.setattr(vertex_api, "JobServiceClient", lambda **given: made.append(given))
    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)

    job_service.client("acme-ml-dev", "europe-west4")

    [given] = made
    assert given["client_options"].api_endpoint == "europe-west4-aiplatform.googleapis.com"
