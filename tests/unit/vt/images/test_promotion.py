"""The same bytes run in the other stack; nothing is built."""

import yaml

from tests.unit.vt.images import stand_in
from tests.unit.vt.images.conftest import write_stack

ONE, TWO = "local-one/training-one/train", "local-two/training-two/train"
TAG = "context-" + "1" * 32


def pinned(root):
    config = yaml.safe_load((root / "Pulumi.two.yaml").read_text())["config"]
    return config["vertex-training:images"]


def pin(root, digest):
    text = f"{{context: jobs/train, digest: '{digest}', builtFrom: {TAG}}}"
    write_stack(root, "one", "local-one", text)


def promote(vt):
    return vt("promote", "train", "--from", "one", "--to", "two")


def test_where_nothing_can_be_mounted_the_bytes_are_copied(vt, root, registry):
    registry.mounts = False
    pin(root, registry.add_image(ONE, TAG))
    assert "(0 bytes copied)" not in promote(vt).output
    assert {key[1] for key in registry.blobs if key[0] == TWO} == {
        key[1] for key in registry.blobs if key[0] == ONE
    }


def test_a_second_promotion_changes_and_sends_nothing(vt, root, registry):
    pin(root, registry.add_image(ONE, TAG))
    promote(vt)
    registry.requests.clear()
    result = promote(vt)
    assert "train: unchanged" in result.output
    assert {method for method, _ in registry.requests} <= {"GET", "HEAD"}


def test_an_index_is_copied_with_its_images(vt, root, registry):
    child = registry.add_image(ONE, "child")
    kind, body = registry.manifests[ONE, child]
    text = f'{{"manifests": [{{"digest": "{child}", "mediaType": "{kind}"}}]}}'
    digest = registry.put(ONE, TAG, stand_in.INDEX, text.encode())
    pin(root, digest)
    assert promote(vt).exit_code == 0
    assert registry.manifests[TWO, child] == (kind, body)
    assert pinned(root)["train"]["digest"] == digest


def test_a_refused_copy_leaves_the_stack_file(vt, root, registry):
    pin(root, registry.add_image(ONE, TAG))
    before = (root / "Pulumi.two.yaml").read_bytes()
    for key in (("GET", f"{ONE}/manifests"), ("POST", TWO), ("PUT", f"{TWO}/manifests")):
        registry.refuse = {key: 403}
        result = promote(vt)
        assert result.exit_code == 1
        assert "it takes roles/artifactregistry." in result.output
        assert "told to refuse" in result.output
        assert (root / "Pulumi.two.yaml").read_bytes() == before
    registry.refuse = {}
    assert promote(vt).exit_code == 0


def test_an_image_that_is_gone_is_not_promoted(vt, root, registry):
    pin(root, "sha256:" + "5" * 64)
    result = promote(vt)
    assert result.exit_code == 1
    assert "is not in the registry" in result.output
    assert pinned(root)["train"]["digest"] == "sha256:" + "0" * 64


def test_a_stack_with_a_context_says_what_the_digest_was_built_from(vt, root, registry):
    digest = registry.add_image(ONE, TAG)
    pin(root, digest)
    write_stack(root, "two", "local-two", "{context: jobs/train}")
    assert promote(vt).exit_code == 0
    assert pinned(root)["train"]["builtFrom"] == TAG


def test_an_image_that_was_promoted_before_keeps_a_tag_for_the_clean_up(vt, root, registry):
    digest = registry.add_image(ONE, TAG)
    write_stack(root, "one", "local-one", f"{{digest: '{digest}'}}")
    assert promote(vt).exit_code == 0
    assert registry.tags(TWO) == [f"digest-{digest.removeprefix('sha256:')[:32]}"]
