"""Links between the pages of this repository: the file is there, and so is the heading."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.fixture_project import is_sample, is_stack_file

ROOT = Path(__file__).resolve().parents[3]
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"""(?:\]\(|\b(?:href|src)=")([^)"\s]+)[)"]""")


def pages():
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / name for name in listed.stdout.splitlines()]


def prose(page):
    return FENCED.sub("", page.read_text())


def anchors(page):
    """As GitHub makes them from headings: lower case, no punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links_within(page):
    return [link for link in LINK.findall(prose(page)) if not re.match(r"[a-z]+:", link)]


def test_there_are_links_to_look_at():
    assert sum(len(links_within(page)) for page in pages()) > 50


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_leads_somewhere(page):
    for link in links_within(page):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_leads_to_a_sample_which_a_company_removes(page):
    for link in links_within(page):
        target = (page.parent / link.partition("#")[0]).resolve()
        name = target.relative_to(ROOT).as_posix()
        assert name == "jobs" or not is_sample(name), link
        assert not is_stack_file(name), link
