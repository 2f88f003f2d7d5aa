"""A sample of the kills of ``vt data``; ``make chaos PART=data`` has 10,000 files and 2 GiB."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos import transfers

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_nothing_is_half_there_after_kills_and_nothing_that_arrived_is_lost(tmp_path: Path) -> None:
    done = transfers.run(tmp_path, count=300, size=80 << 20, kills=1, seed=7)
    assert [transfer.what.split()[0] for transfer in done] == ["push", "pull"] * 2
    assert [(transfer.what, transfer.problems) for transfer in done if transfer.problems] == []
