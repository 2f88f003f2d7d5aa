"""``vt data snapshots`` against the real emulator of Cloud Storage, by the official client."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from tests import fixture_project
from tests.unit.infra.snapshots.fakes import Cloud, Process
from tests.unit.vt.data.test_data import front, home  # noqa: F401 (fixtures)
from vertex_training import stack as stacks
from vertex_training.snapshots.protocol import take_snapshot
from vertex_training_cli.cli import app

SECTION = {"clicks": {"query": "data/clicks.sql", "maxBytesBilled": 10**9}}


@pytest.fixture
def checkout(front, monkeypatch, tmp_path):  # noqa: F811
    """A checkout whose stack has snapshots, with its buckets; and the client."""
    from localgcp.runner.gcsfuse import storage_client

    monkeypatch.setenv("STORAGE_EMULATOR_HOST", front.url)
    (place := tmp_path / "project").mkdir()
    root = fixture_project.copy_project(place)
    (root / "data").mkdir(exist_ok=True)
    (root / "data/clicks.sql").write_text("SELECT * FROM `acme.web.clicks`")
    monkeypatch.chdir(root)
    client = storage_client(front.url)
    made = [client.create_bucket(f"local-training-{key}-local") for key in ("data", "artifacts")]
    yield root, client
    for bucket in made:
        bucket.delete(force=True)


def take(checkout, run=1, cloud=None):
    """Declare a run, and put what a real run would leave into the bucket."""
    root, client = checkout
    file = root / "Pulumi.local.yaml"
    document = yaml.safe_load(file.read_text())
    document["config"]["vertex-training:snapshots"] = {"clicks": {**SECTION["clicks"], "run": run}}
    file.write_text(yaml.safe_dump(document))
    request = stacks.load(root, "local").snapshots["clicks"]
    cloud = cloud or Cloud()
    process = Process(cloud, request)
    take_snapshot(request, process.ports, environment=process.environment)
    bucket = client.bucket(request.bucket)
    for name, (content, _) in cloud.objects.items():
        bucket.blob(name).upload_from_string(content)
    return request


class OtherRows(Cloud):
    """A later cloud, whose exports have one part more."""

    def write_part(self, job, count):
        super().write_part(job, count + 1)


def vt(*words):
    return CliRunner().invoke(app, ["data", "snapshots", *words])


def later():
    cloud = OtherRows()
    cloud.tick(3600)
    return cloud


def test_a_list_has_former_runs_and_says_what_the_stack_file_names(checkout):
    old, new = take(checkout), take(checkout, 2, later())
    found = json.loads(vt("list", "--format", "json").stdout)
    assert [(each["id"], each["run"], each["declared"]) for each in found] == [
        (old.request_id, "1", False),
        (new.request_id, "2", True),
    ]
    assert found[0]["manifest"]["rows"] == 891
    text = vt("list").stdout
    assert "not named" in text
    assert new.request_id in text


def test_a_diff_says_what_differs(checkout):
    take(checkout)
    take(checkout, 2, later())
    found = vt("diff", "clicks", "--format", "json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["bytes"] == {"old": 72, "new": 108}
    assert "sqlSha256" not in found.stdout
    assert "108" in vt("diff", "clicks", "1", "2").stdout
    same = vt("diff", "clicks", "2", "2")
    assert same.exit_code == 0
    assert "there is no snapshot 'clicks' '7'" in vt("diff", "clicks", "1", "7").output


def test_a_deletion_refuses_what_is_named_or_read_and_asks_for_the_rest(checkout):
    root, client = checkout
    request = take(checkout)
    job = root / "jobs/titanic.yaml"
    job.write_text(job.read_text().replace("${buckets.data}/titanic", "${snapshots.clicks}", 1))
    assert "${snapshots.clicks}" in job.read_text()
    refused = vt("delete", "clicks", "1", "--yes")
    assert refused.exit_code == 1
    assert "the stack file names it; jobs read it: titanic" in refused.output
    take(checkout, 2, later())
    asked = vt("delete", "clicks", "1")
    assert asked.exit_code == 2
    assert "3 objects, " in asked.output
    bucket = client.bucket(request.bucket)
    (stray := bucket.blob(f"{request.prefix}x/manifest.json")).upload_from_string("{}")
    assert len(list(bucket.list_blobs(prefix=f"{request.prefix}/"))) == 3
    assert vt("delete", "clicks", request.request_id[:6], "--yes").exit_code == 1  # two begin so
    gone = vt("delete", "clicks", "1", "--yes")
    assert gone.exit_code == 0, gone.output
    assert list(bucket.list_blobs(prefix=f"{request.prefix}/")) == []
    assert stray.exists()
    assert "no manifest" in vt("list").stdout


def test_a_run_that_is_not_there_is_not_the_beginning_of_an_id(checkout):
    request = take(checkout, 3)
    short = request.request_id[:5]
    delete = ("delete", "clicks", short, "--force", "--yes")
    for code, words in ((1, delete), (2, ("diff", "clicks", short, "3"))):
        refused = vt(*words)
        assert refused.exit_code == code
        assert f"there is no snapshot 'clicks' '{short}'" in refused.output
    assert vt("delete", "clicks", request.request_id[:6], "--force", "--yes").exit_code == 0
