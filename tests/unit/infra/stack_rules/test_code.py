"""Code that talks to BigQuery without a project is named with its file and line."""

import pytest

from tests.unit.infra.stacks import BASE
from vertex_training.stack import Stack, read_settings
from vertex_training.stack_rules.code import default_projects, warnings

WRONG = [
    ("from google.cloud import bigquery\nbigquery.Client()", "bigquery.Client()"),
    ("from google.cloud import bigquery as bq\nbq.Client(location='US')", "bigquery.Client()"),
    ("from google.cloud.bigquery import Client\nClient()", "bigquery.Client()"),
    ("import google.cloud.bigquery\ngoogle.cloud.bigquery.Client()", "bigquery.Client()"),
    ("import google.cloud.bigquery as b\nb.Client()", "bigquery.Client()"),
    ("import pandas_gbq\npandas_gbq.read_gbq('SELECT 1')", "pandas_gbq.read_gbq()"),
    ("import pandas as pd\npd.read_gbq('SELECT 1', dialect='standard')", "pandas.read_gbq()"),
]
RIGHT = [
    "from google.cloud import bigquery\nbigquery.Client(project='p')",
    "from google.cloud import bigquery\nbigquery.Client('p')",
    "from google.cloud import bigquery\nbigquery.Client(**given)",
    "from google.cloud import bigquery\nbigquery.Client(*given)",
    "from google.cloud import storage\nstorage.Client()",
    "import pandas_gbq\npandas_gbq.read_gbq('SELECT 1', 'p')",
    "class bigquery: Client = dict\nbigquery.Client()",
    "from .bigquery import Client\nClient()",
    "client()()()\nx[0].Client()",
    "no python (",
    "\0",
    "(" * 100_000,
]


@pytest.mark.parametrize(("code", "call"), WRONG)
def test_a_call_without_a_project_is_found(code, call):
    [found] = default_projects(code.encode())
    assert (found.line, found.call) == (2, call)


@pytest.mark.parametrize("code", RIGHT, ids=range(len(RIGHT)))
def test_nothing_else_is(code):
    assert default_projects(code.encode()) == []


def test_a_variable_in_every_job_names_the_project(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/task.py").write_text(WRONG[0][0])
    (tmp_path / "code/notes.txt").write_text(WRONG[0][0])
    (tmp_path / "code/large.py").write_text(WRONG[0][0] + "\n" + "#" * 2**20)
    stack = Stack(
        read_settings(BASE | {"packages": {"code": {"path": "code"}}}, tmp_path), tmp_path, {}
    )

    class Request:
        def __init__(self, body):
            self.body = body

    def files(**bodies):
        requests = {key: Request(body) for key, body in bodies.items()}
        return [each.location.file for each in warnings(stack.settings, tmp_path, requests)]

    named = '{"env":[{"name":"GOOGLE_CLOUD_PROJECT"}]}'
    assert files() == files(a="{}") == files(a=named, b="{}") == ["code/task.py"]
    assert files(a=named) == files(a=named, b=named) == []
