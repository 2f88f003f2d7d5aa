"""What is pinned is there, for the right machines, and of the folder as it is."""

import json

from typer.testing import CliRunner

from tests.unit.vt.images import stand_in
from tests.unit.vt.images.conftest import write_stack
from vertex_training_cli.cli import app

PATH = "local-one/training-one/train"
TAG = "context-" + "1" * 32
LABELS = {
    "org.opencontainers.image.revision": "a" * 40,
    "vertex-training.context": "jobs/train",
}


def pin(root, digest, more=""):
    write_stack(root, "one", "local-one", f"{{digest: '{digest}'{more}}}")


def check(vt):
    result = vt("images", "check", "--stack", "one", "--format", "json")
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, json.loads(result.stdout)


def test_an_image_in_order_says_where_it_came_from(vt, root, registry):
    pin(root, registry.add_image(PATH, TAG, **LABELS))
    code, [found] = check(vt)
    assert (code, found["level"], found["revision"]) == (0, "ok", "a" * 40)
    assert "linux/amd64" in found["text"]
    assert "of jobs/train at commit aaaaaaaaaaaa" in found["text"]


def test_a_digest_that_is_not_there_is_an_error(vt, root, registry):
    pin(root, "sha256:" + "5" * 64)
    code, [found] = check(vt)
    assert code == 1
    assert "the digest is not in us-central1-docker.pkg.dev/local-one" in found["text"]


def test_content_that_is_not_what_the_digest_says_is_an_error(vt, root, registry):
    digest = registry.add_image(PATH, TAG)
    registry.manifests[PATH, digest] = (stand_in.IMAGE, b"{}")
    pin(root, digest)
    code, [found] = check(vt)
    assert code == 1
    assert "the registry sent other content" in found["text"]


def test_documents_that_are_no_image_or_too_large_are_errors(vt, root, registry, monkeypatch):
    for body in (b"[]", b"{", b'{"config": 1}', b'{"config": {"digest": "sha256:x"}}', b" " * 999):
        monkeypatch.setattr("vertex_training_cli.images.transport.MAX_DOCUMENT", 500)
        pin(root, registry.put(PATH, "x", stand_in.IMAGE, body))
        assert check(vt)[0] == 1, body


def test_a_list_needs_no_network(vt, root, monkeypatch):
    monkeypatch.delenv("ARTIFACT_REGISTRY_EMULATOR_HOST", raising=False)
    write_stack(root, "one", "local-one", "{context: jobs/train}")
    result = vt("images", "list", "--stack", "one")
    assert result.exit_code == 0
    assert "train  not built  jobs/train" in result.output
    [row] = json.loads(vt("images", "list", "--stack", "one", "--format", "json").stdout)
    assert row["state"] == "missing"


def test_a_project_in_the_local_cloud_never_meets_google(vt, root, monkeypatch):
    monkeypatch.delenv("ARTIFACT_REGISTRY_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", "127.0.0.1:1")
    pin(root, "sha256:" + "5" * 64)
    code, [found] = check(vt)
    assert code == 1
    assert "no registry runs in the local cloud" in found["text"]


def whole_check(*arguments):
    return CliRunner().invoke(app, ["check", *arguments, "--format", "json"])


def test_a_registry_that_cannot_be_asked_is_a_warning_of_a_check(vt, root, registry):
    pin(root, registry.add_image(PATH, TAG))
    registry.refuse = {("GET", "manifests"): 403}
    result = whole_check("--stack", "one", "--registry")
    assert result.exit_code == 0
    assert "not looked at" in result.output
