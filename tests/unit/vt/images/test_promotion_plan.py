"""What is to be copied from one stack to another, and why something is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import unjudged
from vertex_training.errors import CommandError
from vertex_training_cli.images import promotion
from vertex_training_cli.images.promotion import Promotion

DIGEST, ZEROS = "sha256:" + "12" * 32, "sha256:" + "0" * 64
TAG = "context-" + "3" * 32
OUTSIDE = {"uri": f"us-docker.pkg.dev/acme/images/tool@{DIGEST}"}
BUILT = {"context": "code", "digest": DIGEST, "builtFrom": TAG}


def plan(
    source: dict[str, Any], target: dict[str, Any], *names: str, to: str = "prod"
) -> list[Promotion]:
    dev = unjudged(stack="dev", project="acme-ml-dev", images=source)
    return promotion.plan(dev, unjudged(stack=to, images=target), names)


@pytest.mark.parametrize(
    ("source", "target", "message", "hint"),
    [
        ({"tx": BUILT}, {}, "stack dev has no image 'x'.", "did you mean 'tx'?"),
        ({}, {"x": BUILT}, "stack dev has no image 'x'.", ""),
        ({"x": OUTSIDE}, {}, "image x of stack dev is one from outside (uri).",
         "copy the uri by hand."),
        ({"x": {"context": "code"}}, {}, "image x of stack dev was not built.",
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
