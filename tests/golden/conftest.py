"""What is golden is previewed in a copy of the repository without its samples."""

from collections.abc import Iterator

import pytest

from tests.conftest import Checkout, copy_checkout


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    copy = copy_checkout(tmp_path_factory.mktemp("golden"), sample_code=False)
    yield copy
    copy.run("vt", "local", "down", "--clean")
