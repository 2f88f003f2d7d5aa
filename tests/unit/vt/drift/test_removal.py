"""``vt drift --remove DIGEST``: members go only if they are exactly those of the report."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import typer

from vertex_training_cli.drift import command
from vertex_training_cli.drift.policies import Membership

LEFT = [
    Membership("projects/acme-ml-dev", "roles/viewer", "user:b@acme.example"),
    Membership("b/acme-data", "roles/storage.admin", "user:a@acme.example", "request.time < x"),
]
#: SHA-256 of the rows, sorted, as JSON without spaces: by ``sha256sum``.
DIGEST = "e8d0a17c7998c93fcb6ce8efc7d691c8a6573537f6577ff2f63893bc7dac7ecc"


class _Client:
    def __init__(self, found: Sequence[Membership] = ()) -> None:
        self.found = found
        self.removed: list[Sequence[Membership]] = []

    def read(self, policy: str) -> list[Membership] | None:
        return [each for each in self.found if each.policy == policy] or None

    def remove(self, left: Sequence[Membership]) -> None:
        self.removed.append(left)


@pytest.mark.parametrize("length", [8, 12, 64])
def test_exactly_what_was_reported_is_removed_and_told(
    length: int, capsys: pytest.CaptureFixture[str]
) -> None:
    client = _Client()
    command._remove(client, LEFT, DIGEST[:length])  # pyright: ignore
    assert client.removed == [LEFT]
    assert capsys.readouterr().err == (
        "vt drift: removed user:b@acme.example from roles/viewer of projects/acme-ml-dev\n"
        "vt drift: removed user:a@acme.example from roles/storage.admin of b/acme-data\n"
    )


@pytest.mark.parametrize(
    ("left", "digest", "shown", "told"),
    [
        (LEFT[:1], DIGEST, DIGEST, "the current digest is f6cb814cc603"),
        (LEFT, DIGEST[:7], DIGEST[:7], "the current digest is e8d0a17c7998"),
        (LEFT, DIGEST + "0", DIGEST + "0", "the current digest is e8d0a17c7998"),
        (LEFT, "", "", "the current digest is e8d0a17c7998"),
        (LEFT, DIGEST.upper(), DIGEST.upper(), "the current digest is e8d0a17c7998"),
        (LEFT, "e" * 200, "e" * 80, "the current digest is e8d0a17c7998"),
        # SHA-256 of "[]": a digest of nothing removes nothing.
    ],
)
def test_another_digest_removes_nothing(
    left: list[Membership],
    digest: str,
    shown: str,
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client = _Client()
    with pytest.raises(typer.Exit) as ended:
        command._remove(client, left, digest)  # pyright: ignore
    assert (ended.value.exit_code, client.removed) == (3, [])
    assert capsys.readouterr().err == (
        f"vt drift: digest {shown} does not match the undeclared members: {told}.\n"
        "No member was removed. Hint: read the new report.\n"
    )
