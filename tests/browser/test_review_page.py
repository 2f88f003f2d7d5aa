"""The page of ``vt review`` in a real browser: without scripts, light and dark, for everybody."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, sync_playwright

import system_programs
from tests.unit.vt.review import plans
from vertex_training_cli.review import formats, report

SCREENSHOT = Path(__file__).parents[2] / "docs" / "images" / "review.png"
pytestmark = pytest.mark.timeout(300)


def page_source() -> str:
    """A page with every part, as the committed screenshot shows it."""
    old, new = plans.job("train-encoder"), plans.job("train-encoder", plans.pool(replicas=2), run=2)
    gpus = plans.pool(
        "a3-megagpu-8g",
        4,
        image="training-prod/trainer@sha256:" + "5f" * 32,
        acceleratorType="NVIDIA_H100_MEGA_80GB",
        acceleratorCount=8,
        reservationAffinity={
            "reservationAffinityType": "SPECIFIC_RESERVATION",
            "values": ["projects/acme-ml-prod/zones/us-central1-a/reservations/h100-mega"],
        },
    )
    network = {"networkAttachment": "projects/acme/regions/us-central1/networkAttachments/psc"}
    plan = plans.plan(
        plans.create(
            plans.JOB,
            "training-pretrain",
            **plans.job("pretrain", gpus, timeout="86400s", pscInterfaceConfig=network),
        ),
        plans.step(
            "replace",
            plans.JOB,
            "training-train-encoder",
            old=old,
            new=new,
            outputs={"state": "JOB_STATE_RUNNING"},
        ),
        plans.step(
            "same",
            "pulumi:pulumi:Stack",
            "vertex-training-dev",
            {},
            {},
            outputs={"limits": {"limits": {"maxUsdPerJob": 500}}},
        ),
        plans.create(plans.MEMBER, "trainer-reads-data", **plans.member("acme-data")),
        plans.create(plans.MEMBER, "public", **plans.member("acme-data", who="allUsers")),
        plans.delete(plans.MEMBER, "raw", **plans.member("acme-raw")),
        plans.create("gcp:compute/network:Network", "network", name="training"),
        plans.delete(plans.BUCKET, "storage-raw", name="acme-raw"),
        plans.step("update", plans.BUCKET, "storage-data", old={"days": 7}, new={"days": 30}),
        plans.step("same", plans.BUCKET, "storage-models", {}, {}, protect=(True, True)),
        plans.violation("no-public-members", "mandatory", "everybody may read it", "::public"),
        plans.said("warning", "jobs/pretrain.yaml:7:3: an image without a digest"),
        plans.summary("failed", guardrails="1.0"),
    )
    return formats.to_html(report.build(plan, source="Previewed offline against an empty state"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = system_programs.find_browser()
    if path is None:
        pytest.fail("there is no browser to test with. Hint: make browser")
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium's sandbox refuses root
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, chromium_sandbox=not root)
        yield started
        started.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page") / "review.html"
    made.write_text(page_source(), encoding="utf-8")
    return made


def opened(chromium: Browser, file: Path, scheme: str, *, scripts: bool = True) -> Page:
    # bypass_csp: the page forbids every script, also the one that judges it.
    page = chromium.new_page(
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=scripts,
        bypass_csp=scripts,
        viewport={"width": 1440, "height": 900},
    )
    page.goto(file.as_uri())
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_anybody(chromium: Browser, file: Path, scheme: str) -> None:
    page = opened(chromium, file, scheme)
    # What is folded is there to be read as well.
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = Axe().run(page).response
    violations = [
        f"{each['id']}: {each['help']}: {[node['target'] for node in each['nodes']]}"
        for each in found["violations"]
    ]
    assert violations == []
    judged = {each["id"] for each in found["passes"]}
    assert {"color-contrast", "document-title", "html-has-lang", "region"} <= judged
    page.close()


def test_light_and_dark_are_not_the_same(chromium: Browser, file: Path) -> None:
    colours = set[str]()
    for scheme in ("light", "dark"):
        page = opened(chromium, file, scheme)
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.close()
    assert len(colours) == 2


def test_without_scripts_everything_can_be_read(chromium: Browser, file: Path) -> None:
    page = opened(chromium, file, "light", scripts=False)
    assert page.locator("h1").inner_text() == "Review of stack dev"
    for text in ("Forbidden by 1 policy violation", "$10,260", "everybody may read it"):
        assert page.get_by_text(text).first.is_visible(), text
    folded = page.get_by_text("update storage-data")
    folded.click()  # folding needs no script either
    assert page.get_by_role("cell", name="30").is_visible()
    page.close()


def test_the_page_asks_nobody_for_anything(chromium: Browser, file: Path) -> None:
    page, asked = chromium.new_page(), list[str]()

    def note(route: Route) -> None:
        asked.append(route.request.url)
        route.continue_()

    page.route("**/*", note)
    page.goto(file.as_uri())
    assert asked == [file.as_uri()]
    page.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_is_wider_than_the_window(chromium: Browser, file: Path, width: int) -> None:
    page = opened(chromium, file, "light")
    page.set_viewport_size({"width": width, "height": 800})
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    page.close()


def test_costs_are_visible_on_a_telephone(chromium: Browser, file: Path) -> None:
    page = opened(chromium, file, "light")
    page.set_viewport_size({"width": 420, "height": 800})
    table = page.locator("table.rows").first
    assert table.evaluate("t => t.parentElement.scrollWidth <= t.parentElement.clientWidth")
    for costs in (table.get_by_text("$10,260"), page.locator(".answers dd", has_text="at most $")):
        box = costs.first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 420
    assert [each["id"] for each in Axe().run(page).response["violations"]] == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_opened_granted_destroyed_is_no_green(chromium: Browser, file: Path, scheme: str) -> None:
    page = opened(chromium, file, scheme)
    css = "getComputedStyle(document.documentElement).getPropertyValue('--good')"
    page.evaluate(f"document.body.style.borderColor = {css}")
    green = page.evaluate("getComputedStyle(document.body).borderTopColor")
    found = page.locator(".gained, .opens, .destroyed, .destroys")
    colours = found.evaluate_all(
        "all => all.map(e => [getComputedStyle(e).color, getComputedStyle(e).fill])"
    )
    assert len(colours) > 3
    assert green not in {colour for both in colours for colour in both}
    page.close()


#: Each kind of change that opens, grants, destroys or lowers something: words of its answer.
RISKY = ("allUsers", "storage-raw", "train-encoder", "no-public-members", "limits.maxUsdPerJob")


@pytest.mark.parametrize("word", RISKY)
def test_a_risky_answer_is_amber_or_red(chromium: Browser, file: Path, word: str) -> None:
    page = opened(chromium, file, "light")
    answers = page.locator("dd.opens, dd.destroys", has_text=word)
    assert answers.count() > 0
    plain = page.evaluate("getComputedStyle(document.body).color")
    colours = answers.evaluate_all("all => all.map(e => getComputedStyle(e).color)")
    # --risk and --bad of the page
    assert set(colours) <= {"rgb(138, 90, 0)", "rgb(164, 14, 38)"}
    assert plain not in colours
    page.close()


def test_who_does_what_after_the_change_is_listed(chromium: Browser, file: Path) -> None:
    page = opened(chromium, file, "light")
    told = page.locator("li.opens", has_text="runs as").all_text_contents()
    assert "job pretrain runs as account trainer-dev (new)" in told
    assert page.locator("li.destroys", has_text="everybody allUsers reads").count() == 1
    page.close()


def test_a_screenshot_can_be_taken(chromium: Browser, file: Path, tmp_path: Path) -> None:
    page = opened(chromium, file, "light")
    target = SCREENSHOT if os.environ.get("UPDATE_GOLDEN") else tmp_path / "review.png"
    page.screenshot(path=target, full_page=True)
    assert target.stat().st_size > 10_000
    page.close()
