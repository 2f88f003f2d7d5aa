"""`vt check FILES` starts without the parser of the command line, and does the same."""

import os
import subprocess
import sys

import pytest

VT = "import sys; sys.argv = ['vt', *sys.argv[1:]]; from vertex_training_cli.cli import app; app()"


def vt(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", VT, *arguments], capture_output=True, check=False, **options
    )


@pytest.mark.parametrize("file", ["jobs/train.yaml", "bad.yaml", "gone.yaml", "-", "jobs"])
def test_output_is_that_of_the_whole_parser(project, file):
    (project / "bad.yaml").write_text("useSpot: yes\n")
    given = b"useSpot: true\n"
    one, other = vt("check", file, input=given), vt("check", "--", file, input=given)
    assert (one.returncode, one.stdout, one.stderr) == (
        other.returncode,
        other.stdout,
        other.stderr,
    )


def test_a_check_loads_neither_google_nor_pulumi_nor_pydantic(project):
    code = VT.removesuffix("app()") + (
        "\ntry:\n    app()\nexcept SystemExit:\n"
        "    heavy = ('google.cloud.', 'google.protobuf', 'grpc', 'pulumi', 'pydantic', 'rich')\n"
        "    print([name for name in sys.modules if name.startswith(heavy)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "check", "jobs/train.yaml"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"


def test_closed_pipe_is_no_traceback(project):
    (project / "bad.yaml").write_text("".join(f"x{n}: 1\n" for n in range(40)))
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", VT, "check", "bad.yaml"],
        stdout=write, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(write)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
