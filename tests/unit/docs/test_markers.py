"""No page, and no other file, holds both sides of a merge."""

import re
import subprocess

from tests.fixture_project import ROOT, reading_samples

MARKER = re.compile(rb"^(<{7} |>{7} |\|{7} )", re.MULTILINE)


def test_no_file_holds_a_conflict_that_was_not_resolved():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = [ROOT / name for name in filter(None, listed.split("\0"))]
    with reading_samples():  # every file, whatever it says
        found = [str(path) for path in paths if path.is_file() and MARKER.search(path.read_bytes())]
    assert not found
