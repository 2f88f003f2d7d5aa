import pytest

from vertex_training import naming
from vertex_training.naming import Names

NAMES = Names("acme-ml-dev", "210987654321", "us-central1", "dev")


def test_every_name_carries_the_stack():
    named = [
        NAMES.bucket("data"),
        NAMES.account_email("trainer"),
        NAMES.secret("wandb"),
        NAMES.repository(),
    ]
    assert named == [
        "acme-ml-dev-data-dev",
        "trainer-dev@acme-ml-dev.iam.gserviceaccount.com",
        "projects/acme-ml-dev/secrets/wandb-dev",
        "us-central1-docker.pkg.dev/acme-ml-dev/training-dev",
    ]


def test_the_vertex_agent_is_named_by_project_number():
    agent = "service-210987654321@gcp-sa-aiplatform.iam.gserviceaccount.com"
    assert NAMES.vertex_agent() == agent


@pytest.mark.parametrize("name", ["ab", "Upper-case", "a" * 64, "-lead", "tail-", "dot.ted"])
def test_illegal_bucket_names_are_recognised(name):
    assert not naming.BUCKET.match(name)


@pytest.mark.parametrize(
    ("key", "value"), [("Team", "x"), ("1a", "x"), ("a" * 64, "x"), ("a", "X"), ("a", "v" * 64)]
)
def test_illegal_labels_are_explained(key, value):
    assert naming.label_problem(key, value)


def test_labels_of_the_stack_win_over_the_built_in_ones():
    assert NAMES.labels({"managed-by": "us"}) == {"managed-by": "us", "stack": "dev"}
