"""One cloud for all tests here that call it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.cloud import ContractCloud, running


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContractCloud]:
    with running(tmp_path_factory.mktemp("contract")) as made:
        yield made
