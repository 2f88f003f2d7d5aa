"""Change product code at random, one place at a time, and run the tests that can detect it.

``python -m tests.mutants --count 200 --seed N`` draws mutants (``tests/mutants/sites.py``) from
all places where the code can be changed; the same seed and tree give the same mutants. Each mutant
runs against the unit tests that execute its line, then against those near it, then against the
golden tests. Prints a line for each mutant, a table, and a diff of each survivor; the exit code is
1 if tests killed fewer than ``GOALS``.
"""

from __future__ import annotations

import argparse
import difflib
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.mutants import copies
from tests.mutants.copies import Copy
from tests.mutants.selection import TestMap, measure, named
from tests.mutants.sites import Mutant, is_valid, mutants

FOLDERS: Final = ("infra", "cli", "localcloud", "bootstrap", "policy")
#: Named parts of it: ``guards`` is the code that keeps somebody or something out.
SETS: Final = {
    "product": FOLDERS,
    "guards": (
        *("bootstrap", "policy", "infra/vertex_training/foundation"),
        *("infra/vertex_training/guardrails", "infra/vertex_training/plugin_callers.py"),
        "infra/vertex_training/secret_rules",
        "infra/vertex_training/customjob/rules/secrets.py",
        "infra/vertex_training/plan/access.py",
        "infra/vertex_training/stack_rules/access.py",
        *("cli/vertex_training_cli/deploy", "cli/vertex_training_cli/github"),
        "cli/vertex_training_cli/engine/values.py",
        "cli/vertex_training_cli/init/manifest.py",
        *("localcloud/localgcp/access", "localcloud/localgcp/home/environment.py"),
        "localcloud/localgcp/gcp/services/identity.py",
        *(
            "localcloud/localgcp/access/pulumi_shim.py",
            "localcloud/localgcp/system/root_directory.py",
        ),
        "localcloud/localgcp/runner/environment.py",
        "localcloud/localgcp/vertex/admission.py",
    ),
}
#: Code whose faults submit twice, submit something wrong or let somebody in.
STRICT: Final = (
    *SETS["guards"],
    *(f"infra/vertex_training/customjob/{name}" for name in ("protocol", "request", "rules")),
)
#: Share of mutants that tests must kill: in that code, and elsewhere.
GOALS: Final = {True: 0.95, False: 0.70}
#: Seconds that a run may take beyond five times what its tests took without a mutant.
SLACK: Final = 60.0
#: Seconds for all golden tests.
GOLDEN_LIMIT: Final = 900.0
#: Seconds: a slower test has to fail twice, since processes can be late.
DOUBTFUL: Final = 1.0

KILLED: Final = "killed"
TIMEOUT: Final = "timeout"
SURVIVED: Final = "survived"
NOT_COVERED: Final = "not covered"


@dataclass(frozen=True, slots=True)
class Result:
    """What the tests made of a mutant."""

    id: str
    status: str
    by: str
    """The test that failed."""
    seconds: float
    diff: str


def judge(copy: Copy, tests: TestMap, mutant: Mutant, *, golden: bool) -> Result:
    """Run the tests against one mutant. The copy is as before afterwards."""
    file, began = copy.path / mutant.path, time.monotonic()
    source = file.read_bytes()
    try:
        file.write_bytes(mutant.apply(source))
        status, by = _status(copy, tests, mutant, golden)
    finally:
        file.write_bytes(source)
    return Result(mutant.id, status, by, round(time.monotonic() - began, 1), _diff(mutant, source))


def _status(copy: Copy, tests: TestMap, mutant: Mutant, golden: bool) -> tuple[str, str]:
    near, far, golden_files = tests.select(mutant)
    for group in (near, far, golden_files if golden else ()):
        while group := [test for test in group if test not in tests.flaky]:
            known = sum(tests.seconds.get(test, 0.0) for test in group)
            limit = GOLDEN_LIMIT if group == golden_files else SLACK + 5 * known
            ended = copy.run(group, limit, "-x")
            if ended.code == 0:
                break
            if ended.code is None:
                return TIMEOUT, ""
            failed = ended.failed[0] if ended.failed else ""
            slow = "::" in failed and tests.seconds.get(failed, 0.0) > DOUBTFUL
            if not slow or copy.run([failed], GOLDEN_LIMIT).code != 0:
                return KILLED, failed
            tests.flaky.add(failed)
    return (SURVIVED if near else NOT_COVERED), ""


def main(arguments: Sequence[str] | None = None, root: Path | None = None) -> int:
    """Exit code 1 if tests kill fewer mutants than ``GOALS``."""
    options = parse_options(arguments)
    root = root or Path(__file__).resolve().parents[2]
    paths = [path for path in options.paths or SETS[options.set] if (root / path).exists()]
    chosen = draw(root, paths, options)
    if not chosen:
        print("There is nothing to mutate.")
        return 0
    print(f"{len(chosen)} mutants, seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        roots = sorted({path.partition("/")[0] for path in paths})
        results = _judge_all(root, Path(folder), roots, chosen, options)
    results.sort(key=lambda result: result.id)
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    return _report(results)


def draw(root: Path, paths: Sequence[str], options: argparse.Namespace) -> list[Mutant]:
    """The mutants to judge: named ones, or ``count`` of all, by ``seed``."""
    sources = {
        name: (root / name).read_bytes()
        for name in copies.files(root)
        if name.endswith(".py")
        and (name in paths or name.startswith(tuple(f"{path}/" for path in paths)))
    }
    every = [mutant for name, source in sources.items() for mutant in mutants(name, source)]
    if options.only:
        known = {mutant.id: mutant for mutant in every}
        if unknown := [id_ for id_ in options.only if id_ not in known]:
            raise SystemExit(f"no such mutant: {', '.join(unknown)}")
        return [known[id_] for id_ in options.only]
    if options.base:
        added = _added_lines(root, options.base, paths)
        every = [mutant for mutant in every if mutant.line in added.get(mutant.path, ())]
    random.Random(options.seed).shuffle(every)
    chosen: list[Mutant] = []
    for mutant in every:
        if len(chosen) == options.count:
            break
        if is_valid(mutant, sources[mutant.path]):
            chosen.append(mutant)
    return chosen


def _judge_all(
    root: Path, folder: Path, roots: Sequence[str], chosen: Sequence[Mutant],
    options: argparse.Namespace,
) -> list[Result]:  # fmt: skip
    jobs = min(options.jobs, len(chosen))
    every = [Copy(root, folder / f"{n}" / "copy") for n in range(jobs)]
    if options.tests:
        tests = named(every[0], options.tests)
    else:
        tests = measure(every[0], root / ".build" / "mutants", roots, options.jobs)

    def judge_next(mutant: Mutant) -> Result:
        copy = every.pop()
        try:
            return judge(copy, tests, mutant, golden=options.golden)
        finally:
            every.append(copy)

    results = []
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(judge_next, mutant) for mutant in chosen]):
            results.append(result := future.result())
            print(f"{len(results):4} {result.status:11} {result.seconds:6.1f} s  {result.id}"
                  f"{'  by ' if result.by else ''}{result.by}", flush=True)  # fmt: skip
    return results


def _report(results: Sequence[Result]) -> int:
    for result in results:
        if result.status in (SURVIVED, NOT_COVERED):
            print(f"\n{result.status}: {result.id}\n{result.diff}")
    print()
    met = True
    for strict, goal in GOALS.items():
        judged = [result for result in results if is_strict(result.id) is strict]
        counts = Counter(result.status for result in judged)
        killed = counts[KILLED] + counts[TIMEOUT]
        if judged:
            told = ", ".join(f"{counts[status]} {status}" for status in counts)
            where = "strict code" if strict else "other code"
            print(
                f"{where:12} {killed / len(judged):6.1%} of {len(judged)}, goal {goal:.0%}: {told}"
            )
        met = met and killed >= goal * len(judged)
    return 0 if met else 1


def is_strict(mutant: str) -> bool:
    """Whether the code of a mutant, named by its id, is in ``STRICT``."""
    path = mutant.partition(":")[0]
    return any(path == name or path.startswith(f"{name}/") for name in STRICT)


def _diff(mutant: Mutant, source: bytes) -> str:
    before, after = source.decode(), mutant.apply(source).decode()
    names = (f"a/{mutant.path}", f"b/{mutant.path}")
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, n=1, lineterm="")
    return "\n".join(lines)


def _added_lines(root: Path, base: str, paths: Sequence[str]) -> dict[str, set[int]]:
    """File -> lines that the tree has and ``base`` has not."""
    command = ["git", "diff", "-U0", "--no-color", "--no-ext-diff", base, "--", *paths]
    text = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    added: dict[str, set[int]] = {}
    file = ""
    for line in text.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ ").removeprefix("b/")
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(found[1]), int(found[2] or 1)
            added.setdefault(file, set()).update(range(first, first + count))
    return added


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="tests.mutants", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--count", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--set", choices=SETS, default="product", help="which code")
    parser.add_argument("--paths", nargs="+", help="other folders and files of product code")
    parser.add_argument("--jobs", type=int, default=2, help="how many at the same time")
    parser.add_argument("--only", action="append", metavar="ID", help="this mutant; repeatable")
    parser.add_argument("--tests", nargs="+", metavar="TEST",
                        help="by these tests alone; nothing is measured")  # fmt: skip
    parser.add_argument("--base", metavar="REV", help="only lines added since this revision")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--no-golden", dest="golden", action="store_false",
                        help="unit tests only: survivors take less time")  # fmt: skip
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
