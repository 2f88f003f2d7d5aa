"""What is to be copied from one stack to another, and why something is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import unjudged
from vertex_training.errors import CommandError
from vertex_training_cli.images import promotion
from vertex_training_cli.images.promotion import Promotion

DIGEST, ZEROS = "sha256:" + "12" * 32, "sha256:" + "0" * 64
FROM = "us-central1-docker.pkg.dev/acme-ml-dev/training-dev"
TO = "us-central1-docker.pkg.dev/acme-ml-prod/training-prod"
TAG = "context-" + "3" * 32
OUTSIDE = {"uri": f"us-docker.pkg.dev/acme/images/tool@{DIGEST}"}
BUILT = {"context": "code", "digest": DIGEST, "builtFrom": TAG}


def plan(
    source: dict[str, Any], target: dict[str, Any], *names: str, to: str = "prod"
) -> list[Promotion]:
    dev = unjudged(stack="dev", project="acme-ml-dev", images=source)
    return promotion.plan(dev, unjudged(stack=to, images=target), names)


@pytest.mark.parametrize(
    ("source", "target", "built_from", "has_context", "tag"),
    [
        (BUILT, {}, TAG, False, TAG),
        (BUILT, {"x": {"digest": ZEROS}}, TAG, False, TAG),
        (BUILT, {"x": {"context": "code"}}, TAG, True, TAG),
        # of a stack that does not say what it was built from
        ({"context": "code", "digest": DIGEST}, {}, "", False, f"digest-{'12' * 16}"),
        ({"digest": DIGEST}, {"x": {"context": "code"}}, "", True, f"digest-{'12' * 16}"),
    ],
)
def test_a_copy_has_the_names_of_both_stacks_and_what_it_was_built_from(
    source: dict[str, Any], target: dict[str, Any], built_from: str, has_context: bool, tag: str
) -> None:
    [found] = plan({"x": source}, target, "x")
    assert found == Promotion("x", f"{FROM}/x", f"{TO}/x", DIGEST, built_from, has_context)
    assert found.tag == tag


def test_images_are_copied_once_in_the_order_of_their_names() -> None:
    found = plan({"a": BUILT, "b": BUILT, "c": BUILT}, {}, "b", "a", "b")
    assert [each.name for each in found] == ["b", "a"]


@pytest.mark.parametrize(
    ("source", "target", "message", "hint"),
    [
        ({"tx": BUILT}, {}, "stack dev has no image 'x'.", "did you mean 'tx'?"),
        ({}, {"x": BUILT}, "stack dev has no image 'x'.", ""),
        ({"x": OUTSIDE}, {}, "image x of stack dev is one from outside (uri).",
         "copy the uri by hand."),
        ({"x": OUTSIDE}, {"x": BUILT}, "image x of stack dev is one from outside (uri).",
         "copy the uri by hand."),
        ({"x": BUILT}, {"x": OUTSIDE}, "image x of stack prod is one from outside (uri).",
         "copy the uri by hand."),
        ({"x": {"context": "code"}}, {}, "image x of stack dev was not built.",
         "vt images build x --stack dev"),
        ({"x": {"digest": ZEROS}}, {}, "image x of stack dev was not built.",
         "vt images build x --stack dev"),
    ],
)  # fmt: skip
def test_what_is_not_copied_is_refused_with_the_way_out(
    source: dict[str, Any], target: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(CommandError) as refused:
        plan(source, target, "x")
    assert (refused.value.message, refused.value.hint) == (message, hint)


def test_a_stack_is_not_copied_to_itself() -> None:
    with pytest.raises(CommandError) as refused:
        plan({"x": BUILT}, {"x": BUILT}, "x", to="dev")
    assert (refused.value.message, refused.value.hint) == ("dev is both --from and --to.", "")
