"""Local clouds of the stories: one for each module, deleted at its end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Checkout, running_checkout
from tests.e2e import inline_programs, only_jobs
from tests.e2e.inline_programs import InlinePrograms
from tests.e2e.only_jobs import Project


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """Yield a copy of the checkout with a running local cloud."""
    with running_checkout(tmp_path_factory.mktemp("story")) as copy:
        yield copy


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Yield a project with only jobs."""
    with only_jobs.project(tmp_path_factory.mktemp("jobs")) as made:
        yield made


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InlinePrograms]:
    """Yield a local cloud for programs of this process."""
    with inline_programs.running(tmp_path_factory.mktemp("inline")) as found:
        yield found
