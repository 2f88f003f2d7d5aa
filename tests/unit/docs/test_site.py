"""`make site`: every page is in it, and nothing in it leads nowhere."""

import html
import re
import subprocess
from pathlib import Path

import vertex_training

ROOT = Path(__file__).resolve().parents[3]
PAGES = (*ROOT.glob("docs/*.md"), *ROOT.glob("docs/adr/*.md"), *ROOT.glob("docs/examples/*/*.md"))
MODULES = {
    path.stem
    for path in (ROOT / "infra/vertex_training/components").glob("*.py")
    if path.stem != "__init__"
}


def build(folder):
    sphinx = (ROOT / ".venv/bin/python", "-m", "sphinx", "-q", "-W", "--keep-going")
    return subprocess.run(
        [*sphinx, "-c", "docs/site", "-d", folder / "trees", ".", folder / "site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_has_every_page_and_a_link_that_leads_nowhere_fails_it(tmp_path):
    # Sphinx warns of a page that no list of contents names; -W makes that an error, too.
    built = build(tmp_path)
    assert built.returncode == 0, built.stderr
    for page in PAGES:
        made = tmp_path / "site" / page.relative_to(ROOT).with_suffix(".html")
        assert made.is_file(), page
    assert "reservations" in (tmp_path / "site/searchindex.js").read_text()
    shown = (tmp_path / "site/docs/site/reference.html").read_text()
    text = html.unescape(re.sub(r"<[^>]+>", "", shown))
    for argument in ("buckets.KEY.deleteAfterDays", "controlBucket", "serviceAccounts.KEY.reads"):
        assert argument in text
    assert "(running or succeeded, optional)" in text


def test_the_reference_has_every_component():
    reference = (ROOT / "docs/site/components.md").read_text()
    assert set(re.findall(r"^## `(\w+)`", reference, re.MULTILINE)) == MODULES


def test_the_reference_has_every_public_component_and_what_extra_gets():
    reference = (ROOT / "docs/site/reference.md").read_text()
    public = {name for name in vertex_training.__all__ if name[0].isupper()}
    wanted = {name for name in public if not name.endswith(("Args", "Error"))}
    assert set(re.findall(r"^## `(\w+)`", reference, re.MULTILINE)) == wanted
