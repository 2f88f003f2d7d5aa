"""What is asked of Google, and how its answers are read."""

import json
from http import HTTPStatus

import pytest
import requests
from google import auth
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError

from vertex_training.customjob.google import prerequisites
from vertex_training.errors import OperatorError

EMAIL = "trainer@acme-ml.iam.gserviceaccount.com"
METRIC = "aiplatform.googleapis.com/custom_model_training_nvidia_t4_gpus"


class Session:
    """Answers every request with ``status`` and ``body``; remembers the request."""

    def __init__(self, status=200, body=None):
        self.status, self.body, self.sent = status, body, []

    def request(self, method, url, *, timeout, **options):
        assert timeout == 10
        if self.status is None:
            raise requests.ConnectionError("no route")
        self.sent.append((method, url, options.get("json", options.get("headers"))))
        answer = requests.Response()
        answer.status_code = self.status
        answer.reason = HTTPStatus(self.status).phrase
        answer._content = b"" if self.body is None else json.dumps(self.body).encode()
        return answer


@pytest.fixture
def google(monkeypatch):
    def answering(status=200, body=None):
        session = Session(status, body)
        monkeypatch.setattr(prerequisites, "session", lambda *, local, account: session)
        return prerequisites.GooglePrerequisites(None, ""), session

    return answering


@pytest.mark.parametrize(
    ("resource", "url"),
    [
        (f"projects/-/serviceAccounts/{EMAIL}", "https://iam.googleapis.com/v1"),
        ("projects/acme-ml", "https://cloudresourcemanager.googleapis.com/v3"),
    ],
)
@pytest.mark.parametrize(
    ("body", "held"), [({"permissions": ["x.y.z"]}, True), ({}, False), (None, False)]
)
def test_a_permission_is_held_if_the_answer_repeats_it(google, resource, url, body, held):
    service, session = google(body=body)
    assert service.has_permission(resource, "x.y.z") is held
    expected = ("POST", f"{url}/{resource}:testIamPermissions", {"permissions": ["x.y.z"]})
    assert session.sent == [expected]


@pytest.mark.parametrize(
    ("buckets", "limit"),
    [
        ([{"effectiveLimit": "8"}], 8),
        ([{"effectiveLimit": "-1"}], None),
        ([{}], 0),
        ([{"effectiveLimit": "8"}, {"effectiveLimit": "1", "dimensions": {"region": "r"}}], 1),
        ([{"effectiveLimit": "8"}, {"effectiveLimit": "1", "dimensions": {"region": "s"}}], 8),
    ],
)
def test_a_quota_is_that_of_the_region_or_else_of_all(google, buckets, limit):
    service, session = google(body={"consumerQuotaLimits": [{"quotaBuckets": buckets}]})
    assert service.quota("acme-ml", "r", METRIC) == limit
    [(_, url, _)] = session.sent
    assert url == (
        "https://serviceusage.googleapis.com/v1beta1/projects/acme-ml/services/"
        "aiplatform.googleapis.com/consumerQuotaMetrics/"
        "aiplatform.googleapis.com%2Fcustom_model_training_nvidia_t4_gpus?view=FULL"
    )


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (401, "401 Unauthorized of {}"),
        (403, "403 Forbidden of {}"),
        (429, "429 Too Many Requests of {}"),
        (500, "500 Internal Server Error of {}"),
        (None, "no answer of {}: ConnectionError"),
    ],
)
def test_everything_else_is_no_answer_and_no_no(google, status, text):
    service, _ = google(status)
    for ask, url in (
        (lambda: service.has_permission("projects/p", "x.y.z"),
         "https://cloudresourcemanager.googleapis.com/v3/projects/p:testIamPermissions"),
        (lambda: service.has_image("us-docker.pkg.dev", "p/r/i", "v1"),
         "https://us-docker.pkg.dev/v2/p/r/i/manifests/v1"),
        (lambda: service.has_reservation("projects/p/zones/z/reservations/r"),
         "https://compute.googleapis.com/compute/v1/projects/p/zones/z/reservations/r"),
        (lambda: service.quota("p", "r", METRIC),
         f"https://serviceusage.googleapis.com/{prerequisites.quota_path('p', METRIC)}"),
    ):  # fmt: skip
        with pytest.raises(OperatorError) as failed:
            ask()
        assert str(failed.value) == text.format(url)


def test_a_session_acts_as_the_account_or_as_the_caller(monkeypatch):
    session, asked = prerequisites.session.__wrapped__, []

    def default(**given):
        asked.append(given)
        if len(asked) > 1:
            raise DefaultCredentialsError
        return AnonymousCredentials(), "acme-ml"

    robot = AnonymousCredentials()
    monkeypatch.setattr(auth, "default", default)
    monkeypatch.setattr(
        prerequisites, "impersonated_credentials", {"robot": robot, "": None}.__getitem__
    )
    assert session(local=True, account="robot").trust_env is False
    assert session(local=False, account="robot").credentials is robot
    assert asked == []
    assert isinstance(session(local=False, account="").credentials, AnonymousCredentials)
    assert asked == [{"scopes": ["https://www.googleapis.com/auth/cloud-platform"]}]
    with pytest.raises(OperatorError, match=r"^no Google Cloud credentials\. Sign in with"):
        session(local=False, account="")


def test_an_unknown_quota_is_not_a_quota_of_0(google):
    for body in ({}, {"consumerQuotaLimits": []}):
        with pytest.raises(OperatorError, match="no limit that is known"):
            google(body=body)[0].quota("p", "r", METRIC)
    with pytest.raises(OperatorError, match="there is no such quota"):
        google(404)[0].quota("p", "r", METRIC)


def test_a_local_project_asks_the_local_cloud_and_never_google(monkeypatch):
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", "127.0.0.1:1")
    monkeypatch.delenv("ARTIFACT_REGISTRY_EMULATOR_HOST", raising=False)
    service = prerequisites.connect("local-x")
    assert service._base("iam") == service._base("compute") == "http://127.0.0.1:1"
    with pytest.raises(OperatorError, match="no registry of images runs"):
        service.has_image("us-docker.pkg.dev", "p/r/i", "v1")
    with pytest.raises(OperatorError, match="VERTEX_EMULATOR_HOST is set"):
        prerequisites.connect("acme-ml")
