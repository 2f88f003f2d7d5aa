"""The first screen of the README: the table that `make local` ends with, as it is printed."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Final

import yaml
from rich.console import Console

from vertex_training_cli.console import show_facts, table

ROOT: Final = Path(__file__).resolve().parents[3]
README: Final = (ROOT / "README.md").read_text()
COUNTS: Final = yaml.safe_load((ROOT / "tests" / "golden" / "local.yaml").read_text())["counts"]
LEFT_OUT: Final = "…"


def sample() -> tuple[list[str], list[str]]:
    """(Resources, facts of the job) of the sample, without lines that stand for others."""
    found = re.search(r"```console\n(RESOURCES .*?)```", README, re.DOTALL)
    assert found
    resources, job = found[1].strip().split("\n\n")
    return (
        [line for line in resources.splitlines() if line != LEFT_OUT],
        [line for line in job.splitlines() if line != LEFT_OUT],
    )


def printed(console: Console) -> list[str]:
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_resources_of_the_sample_are_those_of_the_local_stack() -> None:
    out = Console(file=StringIO(), width=200)
    rows = [*sorted(COUNTS.items()), ("total", sum(COUNTS.values()))]
    out.print(table("RESOURCES OF local", "COUNT", rows=[(name, str(n)) for name, n in rows]))
    shown = sample()[0]
    assert shown == [line for line in printed(out) if line in shown]
    assert shown[0].startswith("RESOURCES")
    assert shown[-1].startswith("total")


def test_the_job_of_the_sample_is_printed_like_that() -> None:
    shown = sample()[1]
    head, *facts = [tuple(line.split(maxsplit=1)) for line in shown]
    out = Console(file=StringIO(), width=200)
    show_facts(out, head, facts)
    assert shown == printed(out)
    assert dict(facts)["state"] == "SUCCEEDED"
