"""What `vt local` says when the machine is at fault."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from vt.cli import app
from vt.local.home import Home


def test_a_damaged_database_is_one_line_and_exit_code_1(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    home.database.write_text("no database")

    done = CliRunner().invoke(app, ["local", "status"])

    assert done.exit_code == 1
    assert done.stderr == (
        "vt: cloud.sqlite cannot be used: file is not a database. "
        "Hint: `vt local down --clean` begins anew.\n"
    )


def test_a_file_that_cannot_be_used_is_one_line_and_exit_code_1(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    home.start_lock.mkdir()

    done = CliRunner().invoke(app, ["local", "start"])

    assert done.exit_code == 1
    assert done.stderr == f"vt: {home.start_lock} cannot be used: Is a directory.\n"
