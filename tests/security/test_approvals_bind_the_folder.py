"""Tests that a deployment refuses uncommitted files which a program would run or read."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import git
from tests.unit.vt.conftest import project
from vertex_training_cli.deploy import sources
from vertex_training_cli.engine import stacks

__all__ = ["project"]
MINE: Final = "print('committed')\n"
THEIRS: Final = "print('of the attacker')\n"


def put(root: Path, name: str, text: str = MINE) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def repo(project: Path) -> Path:
    put(project, "__main__.py")
    put(project, "extra.py")
    put(project, "policy/__main__.py")
    git(project, "init", "-q", "-b", "main")
    commit(project)
    return project


def commit(repo: Path) -> None:
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a commit")


def ignore(repo: Path, *patterns: str) -> None:
    put(repo, ".gitignore", "".join(f"{each}\n" for each in patterns))
    git(repo, "rm", "-qr", "--cached", ".")
    commit(repo)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
@pytest.mark.parametrize("name", ["__main__.py", "Pulumi.dev.yaml"])
def test_edit_hidden_by_git_flags_is_detected(repo: Path, flag: str, name: str) -> None:
    git(repo, "update-index", flag, name)
    assert not sources.checkout(repo, "dev").problems()
    with (repo / name).open("a") as file:
        file.write("# theirs\n")
    assert sources.checkout(repo, "dev").changed == (name,)


def test_edit_with_unchanged_size_and_times_is_detected(repo: Path) -> None:
    git(repo, "config", "core.trustctime", "false")
    file = repo / "extra.py"
    os.utime(file, (1e9, 1e9))
    git(repo, "update-index", "--refresh")
    file.write_text(MINE.replace("committed", "COMMITTED"))
    os.utime(file, (1e9, 1e9))
    assert sources.checkout(repo, "dev").changed == ("extra.py",)


def test_index_of_the_checkout_stays_unchanged(repo: Path) -> None:
    put(repo, "notes.md", "staged")
    git(repo, "add", "notes.md")
    before = (repo / ".git" / "index").read_bytes()
    sources.checkout(repo, "dev")
    assert (repo / ".git" / "index").read_bytes() == before


@pytest.mark.parametrize(
    "name", ["policy/pulumi_policy.py", "vendor/mod.py", "vendor/deep/mod.pyc", "vendor/mod.so"]
)
def test_ignored_module_outside_of_packages_is_detected(repo: Path, name: str) -> None:
    ignore(repo, "policy/pulumi_policy.py", "vendor")
    assert not sources.checkout(repo, "dev").problems()
    put(repo, name)
    assert sources.checkout(repo, "dev").added == (name,)


def test_ignored_link_to_a_module_is_detected(
    repo: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    put(outside, "mod.py")
    (outside / "round").symlink_to(outside)
    ignore(repo, "vendor")
    (repo / "vendor").symlink_to(outside)
    assert sources.checkout(repo, "dev").added == ("vendor/mod.py",)


def test_ignored_file_that_cannot_be_imported_is_accepted(repo: Path) -> None:
    ignore(repo, ".venv", "node_modules", "data", "*.log")
    for name in (
        ".venv/lib/mod.py", "node_modules/node-gyp/gyp.py", "data/train.csv", "data/a-b.py",
        "data/settings.yaml", "run.log",
    ):  # fmt: skip
        put(repo, name)
    assert not sources.checkout(repo, "dev").problems()


#: Keys of ``Pulumi.yaml`` by which the engine runs what lies at a path.
RUNS: Final = ("main: {}", "plugins: {{providers: [{{name: gcp, path: {}}}]}}")


@pytest.mark.parametrize("key", RUNS)
@pytest.mark.parametrize("path", ["../outside", "link"])
def test_uncommitted_program_or_plugin_is_not_executed(repo: Path, key: str, path: str) -> None:
    put(repo.parent, "outside/__main__.py", THEIRS)
    (repo / "link").symlink_to("../outside")
    put(repo, "Pulumi.yaml", f"name: x\nruntime: python\n{key.format(path)}\n")
    commit(repo)
    assert f"Pulumi.yaml -> {path}" in sources.checkout(repo, "dev").added


@pytest.mark.parametrize("key", RUNS)
def test_ignored_program_or_plugin_in_a_hidden_folder_is_detected(repo: Path, key: str) -> None:
    put(repo, "Pulumi.yaml", f"name: x\nruntime: python\n{key.format('.hidden')}\n")
    put(repo, ".hidden/__main__.py")
    commit(repo)
    ignore(repo, ".hidden/mod.py", ".hidden/__pycache__")
    git(repo, "add", "--force", ".hidden/__main__.py")
    put(repo, ".hidden/__pycache__/x.pyc")
    assert not sources.checkout(repo, "dev").problems()
    put(repo, ".hidden/mod.py", THEIRS)
    assert sources.checkout(repo, "dev").added == (".hidden/mod.py",)


def test_ignored_job_file_of_the_stack_is_detected(repo: Path) -> None:
    ignore(repo, "jobs/train.yaml")
    assert sources.checkout(repo, "dev").added == ("jobs/train.yaml",)


def test_ignored_include_of_the_stack_is_detected(repo: Path) -> None:
    with (repo / "Pulumi.dev.yaml").open("a") as file:
        file.write("  vertex-training:include: [shared.yaml]\n")
    put(repo, "shared.yaml", "config: {}\n")
    ignore(repo, "shared.yaml")
    assert sources.checkout(repo, "dev").added == ("shared.yaml",)


def forge(source: Path) -> None:
    """Write bytecode of other code beside ``source``, which Python runs without reading
    the source.
    """
    theirs = put(source.parent, "theirs.txt", THEIRS)
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    cache = importlib.util.cache_from_source(str(source))
    py_compile.compile(str(theirs), cache, str(source), invalidation_mode=unchecked)
    theirs.unlink()


def imported(repo: Path, env: dict[str, str]) -> str:
    command = [sys.executable, "-c", "import extra"]
    done = subprocess.run(command, cwd=repo, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_deployment_runs_sources_not_cached_bytecode(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "gs://acme-state")
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    forge(repo / "extra.py")
    assert imported(repo, dict(os.environ)) == "of the attacker"
    found = stacks.find("dev", repo)
    deploying = found.deployment_environment(lambda _: None)
    reviewing = found.preview_target(offline=False).env
    for _ in range(2):  # the second reads what the first compiled
        assert imported(repo, dict(deploying)) == "committed"
        assert imported(repo, dict(reviewing)) == "committed"


def added(repo: Path) -> tuple[str, ...]:
    return sources.checkout(repo, "dev").added


@pytest.mark.parametrize("name", ["requirements.lock", "requirements.txt"])
def test_ignored_package_lists_are_part_of_the_approval(repo: Path, name: str) -> None:
    ignore(repo, "requirements.*")
    assert added(repo) == ()
    put(repo, name, "attacker==1.0\n")
    assert added(repo) == (name,)


def test_untracked_link_is_detected_unless_it_leads_to_plain_text(repo: Path) -> None:
    put(repo, "docs/notes.md")
    (repo / "gone").symlink_to("nowhere")
    (repo / "folder").symlink_to("docs")
    (repo / "notes").symlink_to("docs/notes.md")
    assert added(repo) == ("folder", "gone")


def test_nested_repository_is_checked_only_for_files_a_program_reads(repo: Path) -> None:
    git(repo, "init", "-q", "inner")
    for name in ("a.py", "notes.md", "deep/b.yml", "__pycache__/c.py", ".git/d.py"):
        put(repo, f"inner/{name}")
    assert added(repo) == ("inner/a.py", "inner/deep/b.yml")


def test_names_that_cannot_be_imported_are_skipped(repo: Path) -> None:
    ignore(repo, "data", "data-2", "*.py.txt")
    for name in ("data-2/mod.py", "data/2x/mod.py", "data/2x.py", "data/mod.py.txt"):
        put(repo, name)
    assert added(repo) == ()
    put(repo, "data/ok/mod.cpython-311-x86_64-linux-gnu.so")
    assert added(repo) == ("data/ok/mod.cpython-311-x86_64-linux-gnu.so",)


def test_tracked_link_must_lead_to_tracked_files(repo: Path) -> None:
    put(repo, "pkg/mod.py")
    put(repo, "empty/notes.txt")
    ignore(repo, "empty")
    for name, target in {
        "top": ".", "whole": "pkg", "mod.py": "pkg/mod.py", "none": "empty", "up": "..",
        "text.md": "/etc/hostname",
    }.items():  # fmt: skip
        (repo / name).symlink_to(target)
    commit(repo)
    assert added(repo) == ("none -> empty", "up -> ..")


def runtime(repo: Path, name: str, path: str) -> None:
    """Return engine files that name the environment at ``path``."""
    options = f"options: {{toolchain: pip, virtualenv: {path}}}"
    put(repo, name, f"name: vertex-training\nruntime: {{name: python, {options}}}\n")
    commit(repo)


@pytest.mark.parametrize("path", ["venv", "../.venv", "/srv/venv", ".venv/../venv", "jobs/.venv"])
def test_only_the_environment_of_setup_is_executed(repo: Path, path: str) -> None:
    runtime(repo, "Pulumi.yaml", path)
    said = "".join(map(str, sources.checkout(repo, "dev").problems()))
    assert f"another Python environment than .venv (got Pulumi.yaml -> {path})" in said
    for own in (".venv", "./.venv/", str(repo / ".venv")):
        runtime(repo, "Pulumi.yaml", own)
        assert not sources.checkout(repo, "dev").problems()


@pytest.mark.parametrize("toolchain", ["poetry", "uv"])
def test_toolchain_that_discovers_environments_is_detected(repo: Path, toolchain: str) -> None:
    options = f"options: {{toolchain: {toolchain}}}"
    put(repo, "Pulumi.yaml", f"name: vertex-training\nruntime: {{name: python, {options}}}\n")
    commit(repo)
    assert sources.checkout(repo, "dev").environments == (f"Pulumi.yaml -> {toolchain}",)


def test_policies_run_only_in_their_own_environment(repo: Path) -> None:
    runtime(repo, "policy/PulumiPolicy.yaml", "../venv")
    assert not sources.checkout(repo, "dev").problems()  # they are not asked
    found = sources.checkout(repo, "dev", "policy").environments
    assert found == ("policy/PulumiPolicy.yaml -> ../venv",)
    runtime(repo, "policy/PulumiPolicy.yaml", "../.venv/policy")
    assert not sources.checkout(repo, "dev", "policy").problems()


def test_plugins_run_only_in_their_own_environment(repo: Path) -> None:
    plugin = "plugins: {providers: [{name: gcp, path: gcp}]}"
    put(repo, "Pulumi.yaml", f"name: vertex-training\nruntime: python\n{plugin}\n")
    runtime(repo, "gcp/PulumiPlugin.yaml", "/srv/venv")
    found = sources.checkout(repo, "dev").environments
    assert found == ("gcp/PulumiPlugin.yaml -> /srv/venv",)


@pytest.mark.parametrize("is_ignored", [True, False])
@pytest.mark.parametrize("name", ["Pulumi.json", "policy/PulumiPolicy.json"])
def test_uncommitted_pulumi_json_is_detected(repo: Path, name: str, is_ignored: bool) -> None:
    """The engine reads ``Pulumi.json`` in place of ``Pulumi.yaml``, which may name
    another program.
    """
    ignore(repo, "*.json" if is_ignored else "none")
    put(repo, name, "{}")
    assert added(repo) == (name,)


def test_json_policy_packs_run_only_in_their_own_environment(repo: Path) -> None:
    put(repo, "policy/PulumiPolicy.json", '{"runtime": {"options": {"virtualenv": "/srv/venv"}}}')
    commit(repo)
    found = sources.checkout(repo, "dev", "policy").environments
    assert found == ("policy/PulumiPolicy.json -> /srv/venv",)
