"""A page in a real browser neither reads nor writes storage, and submits no job."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from google.cloud import storage
from playwright.sync_api import Browser, Page, sync_playwright

import system_programs
from localgcp.storage import proxy
from localgcp.storage.proxy import StorageFront
from tests.security.conftest import box
from tests.unit.localcloud.conftest import PARENT, Cloud, cloud, home, make_cloud
from tests.unit.localcloud.faults.conftest import front

__all__ = ["box", "cloud", "front", "home", "make_cloud"]
pytestmark = pytest.mark.timeout(300)
READ = "/storage/v1/b/box/o/inside?alt=media"
WRITE = "/upload/storage/v1/b/box/o?uploadType=media&name=evil"
JOB = f"/v1/{PARENT}/customJobs"
SUBMIT = "/google.cloud.aiplatform.v1.JobService/CreateCustomJob"


@pytest.fixture(scope="module")
def site() -> Iterator[int]:
    """Port of a site that serves an empty page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>page</title><body></body>")

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for which ``evil.example`` is this machine: what rebinding a name comes to."""
    path = system_programs.find_browser()
    if path is None:
        pytest.fail("there is no browser to test with. Hint: make browser")
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium's sandbox refuses root
    arguments = ["--host-resolver-rules=MAP evil.example 127.0.0.1", "--no-proxy-server"]
    # A page of a public site is also asked for a permission; here the servers stand alone.
    arguments.append("--disable-features=LocalNetworkAccessChecks,HttpsUpgrades")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, chromium_sandbox=not root, args=arguments
        )
        yield started
        started.close()


@pytest.fixture
def page(chromium: Browser, site: int) -> Iterator[Page]:
    """A page of a foreign site."""
    context = chromium.new_context()
    made = context.new_page()
    made.goto(f"http://evil.example:{site}/")
    yield made
    context.close()


#: Each gets the address of a server and a path, and returns what the page got to see.
FETCH = """async ([url, method, type, mode]) => {
    try {
        const options = {method, mode, headers: type ? {'Content-Type': type} : {}};
        if (method !== 'GET') options.body = 'evil';
        return await (await fetch(url, options)).text();
    } catch (error) { return 'refused: ' + error; }
}"""
LOAD = """([tag, url]) => new Promise(done => {
    const element = document.createElement(tag);
    element.onload = () => done('loaded'); element.onerror = () => done('refused');
    element.src = url; document.body.append(element);
})"""
#: Ends when the answer is there; an answer without a page, as of a download, never is.
FORM = """([url, type]) => new Promise(done => {
    document.body.innerHTML = '<iframe name="answer"></iframe>';
    const form = document.createElement('form');
    Object.assign(form, {action: url, method: 'POST', enctype: type, target: 'answer'});
    form.innerHTML = '<input name="name" value="evil"><input name="key" value="evil">';
    document.body.append(form);
    document.querySelector('iframe').onload = () => done();
    setTimeout(() => done(), 10000);
    form.submit();
})"""
SOCKET = """url => new Promise(done => {
    const made = new WebSocket(url);
    made.onopen = () => done('opened'); made.onerror = () => done('refused');
})"""
#: Method, content type and mode of a fetch.
FETCHES = [
    ("GET", "", "cors"), ("GET", "", "no-cors"), ("POST", "text/plain", "cors"),
    ("POST", "text/plain", "no-cors"), ("POST", "application/grpc", "cors"),
    ("POST", "application/grpc-web", "cors"), ("PUT", "application/json", "cors"),
    ("DELETE", "", "cors"),
]  # fmt: skip
FORMS = ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"]


def attack(page: Page, name: str, port: int, paths: list[str]) -> list[str]:
    """Everything a page can send, to a server under a name; what it got to see."""
    seen: list[str] = []
    for path in paths:
        url = f"http://{name}:{port}{path}"
        seen += [page.evaluate(FETCH, [url, *each]) for each in FETCHES]
        # An element may load what it does not understand; it must not be the object.
        page.evaluate(LOAD, ["img", url])
        page.evaluate(LOAD, ["script", url])
        seen.append(page.evaluate(SOCKET, f"ws://{name}:{port}{path}"))
        for type_ in FORMS:
            page.evaluate(FORM, [url, type_])
            frame = page.frame("answer")
            seen.append(frame.content() if frame else "")
    return seen


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "evil.example"])
def test_a_page_of_a_foreign_site_does_nothing_in_storage(
    front: StorageFront, box: storage.Bucket, page: Page, name: str
) -> None:
    seen = attack(page, name, front.port, [READ, WRITE, "/box"])
    assert not [text for text in seen if "secret" in text or text == "opened"]
    assert [blob.name for blob in box.list_blobs()] == ["inside"]
    assert box.blob("inside").download_as_bytes() == b"secret"


def test_a_page_whose_name_was_bound_anew_to_this_port_reads_nothing(
    front: StorageFront, box: storage.Bucket, page: Page
) -> None:
    page.goto(f"http://evil.example:{front.port}{READ}")  # now its own origin is the server
    assert "secret" not in page.content()
    seen = attack(page, "evil.example", front.port, [READ, WRITE])
    assert not [text for text in seen if "secret" in text or text == "opened"]
    assert [blob.name for blob in box.list_blobs()] == ["inside"]


def test_these_attacks_arrive_where_nothing_refuses_them(
    front: StorageFront, box: storage.Bucket, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "check_page", lambda *_: None)
    attack(page, "127.0.0.1", front.port, [WRITE])
    assert "evil" in [blob.name for blob in box.list_blobs()]
    page.goto(f"http://evil.example:{front.port}{READ}")
    assert "secret" in page.content()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "evil.example"])
def test_a_page_of_a_foreign_site_submits_no_job(cloud: Cloud, page: Page, name: str) -> None:
    seen = attack(page, name, cloud.port, [JOB, SUBMIT])
    assert "opened" not in seen
    assert not list(cloud.client.list_custom_jobs(parent=PARENT))
