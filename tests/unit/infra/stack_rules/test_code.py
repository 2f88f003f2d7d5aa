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


def test_it_is_told_at_its_file_and_line_for_packages_and_images(tmp_path):
    for folder in ("jobs/clicks", "images/clicks"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "task.py").write_text(WRONG[0][0])
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "images/clicks/Dockerfile").write_text("FROM scratch")
    digest = "sha256:" + "0" * 64
    raw = BASE | {
        "packages": {"clicks": {"path": "jobs/clicks"}},
        "images": {"clicks": {"context": "images/clicks", "digest": digest}},
    }
    stack = Stack(read_settings(raw, tmp_path), tmp_path, {})
    found = [each for each in stack.warnings({}) if "bigquery.Client()" in each.what]
    assert [(each.location.file, each.location.line, each.level) for each in found] == [
        ("images/clicks/task.py", 2, "warning"),
        ("jobs/clicks/task.py", 2, "warning"),
    ]
    assert found[0].hint == "project=…, or the variable GOOGLE_CLOUD_PROJECT in the job file"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from google.cloud import bigquery\ndef f():\n    return bigquery.Client()\n"
         "bigquery.Client()", [(3, "bigquery.Client()", "project"),
                               (4, "bigquery.Client()", "project")]),
        ("import pandas_gbq as g\ng.to_gbq(frame, 'd.t')", [
            (2, "pandas_gbq.to_gbq()", "project_id")]),
        ("import pandas_gbq as g\ng.to_gbq(frame, 'd.t', 'p')", []),
        ("import pandas_gbq as g\ng.read_gbq('SELECT 1', project_id='p')", []),
        ("import pandas_gbq as g\ng.read_gbq('SELECT 1', project='p')", [
            (2, "pandas_gbq.read_gbq()", "project_id")]),
        ("import pandas\npandas.read_gbq('SELECT 1')", [(2, "pandas.read_gbq()", "project_id")]),
        ("def f():\n    from google.cloud.bigquery import Client as C\n    C()", [
            (3, "bigquery.Client()", "project")]),
        ("import google.cloud.bigquery as b, os\nb.Client()\nos.getenv('x')", [
            (2, "bigquery.Client()", "project")]),
        ("from google.cloud import bigquery\nbigquery.Client(None)", []),
        ("from google.cloud import bigquery\nbigquery.Dataset()", []),
        ("from . import bigquery\nbigquery.Client()", []),
    ],
)  # fmt: skip
def test_calls_are_told_in_the_order_of_their_lines_with_the_argument_they_lack(code, found):
    told = default_projects(code.encode())
    assert [(each.line, each.call, each.argument) for each in told] == found


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
