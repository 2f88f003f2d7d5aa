"""``vt local up``: starts the local cloud, runs ``pulumi up``, and waits for the jobs.

``--endpoints FILE`` trains and serves a model in a separate stack. A model needs the output of a
run. So the stack is deployed first without the models and endpoints of FILE, then with them.
Serving containers run on this machine.
"""

from __future__ import annotations

import copy
import json
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml

from localgcp import lifecycle
from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.home.environment import environment
from localgcp.runner.executors import read_substitutes, read_wait, with_substitutes
from localgcp.system.root_directory import RootDirectory
from localgcp.tuning.records import TuningRecord, TuningTable, best_trial
from localgcp.tuning.searches import to_text
from vertex_training.errors import CommandError
from vertex_training.settings.project_files import file_name
from vertex_training.stack import SCHEMA
from vertex_training_cli.console import console, plain, print_status, show_facts, table
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.local import results
from vertex_training_cli.local.commands import GpuChoice, keep_gpu_choice, private_files
from vertex_training_cli.local.results import JobRecords, LocalJob, StackJob, log_file
from vertex_training_cli.up.command import bring_up

Report = Callable[[str], None]
SUCCEEDED: Final = "SUCCEEDED"


def up(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack to deploy.")] = "local",
    wait: Annotated[bool, typer.Option(help="Wait until all jobs of the stack have ended.")] = True,
    endpoints: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Afterwards, deploy the models and endpoints of FILE, in stack STACK-endpoint.",
        ),
    ] = None,
    gpus: GpuChoice = None,
) -> None:
    """Start the local cloud, run `pulumi up`, wait for the jobs and show the results.

    If no file has changed, no job is submitted.

    Exit code: 0 if `pulumi up` and all jobs succeeded, else 1.
    """
    with private_files():
        home = Home.find()
        keep_gpu_choice(home, gpus)
        if endpoints is None:
            raise typer.Exit(run(home, stack, wait=wait, report=print_status))
        train = partial(run, home, wait=True, report=print_status, last=False)
        then = partial(_bring_up, home, report=print_status)
        code = run_with_endpoints(home, stack, endpoints, train, then)
        served = f"{stack}{SUFFIX}"
        lists = [f"vt {command} list --stack {served}" for command in ("endpoints", "models")]
        show_next_steps([*lists, "vt local down"])
        raise typer.Exit(code)


def run(
    home: Home, stack: str, *, wait: bool, report: Report,
    only: Collection[str] | None = None, last: bool = True,
) -> int:  # fmt: skip
    """Return the exit code of pulumi if pulumi failed, 1 if a job did not succeed, else 0.

    With ``only``, other jobs are not awaited and not shown. With ``last``, print commands for the
    next steps.
    """
    if code := _bring_up(home, stack, report):
        return code
    where = stacks.find(stack, home.repo)
    state = results.read_state(home, where.pulumi_project, where.stack)
    jobs = JobRecords(home)
    shown_jobs = [job for job in state.jobs if only is None or job.name in only]
    if wait:
        watch(home, jobs, shown_jobs)
    rows = [(type_, str(count)) for type_, count in sorted(state.counts.items())]
    rows.append(("total", str(state.counts.total())))
    console().print()
    console().print(table(f"RESOURCES OF {stack}", "COUNT", rows=rows))
    where.connect_clients()
    code = _show_jobs(home, shown_jobs, jobs)
    if last:
        name = next((job.name for job in shown_jobs), "")
        logs = [f"vt jobs logs {name} --stack {stack}"] if name else []
        show_next_steps([*logs, f"vt jobs list --stack {stack}", "vt local down"])
    return code


def show_next_steps(commands: Sequence[str]) -> None:
    """Print commands for the next steps."""
    console().print()
    show_facts(console(), ("NEXT", ""), [("", command) for command in commands])


def _bring_up(home: Home, stack: str, report: Report) -> int:
    where = stacks.find(stack, home.repo)
    info = lifecycle.start(home, report)
    pulumi = PulumiCli(where.root, environment(home, info.ports))
    # A preview would double the time.
    return bring_up(where, pulumi, ["--yes", "--skip-preview"], report)


def _show_jobs(home: Home, wanted: Sequence[StackJob], jobs: JobRecords) -> int:
    out, failed = console(), 0
    for job in wanted:
        record = jobs.get(job.job_id)
        out.print()
        show_facts(out, ("JOB", job.name), _job_rows(home, job, record))
        if record and record.state.terminal and record.state.word != SUCCEEDED:
            failed += 1
    return 1 if failed else 0


def _job_rows(home: Home, job: StackJob, record: LocalJob | None) -> list[tuple[str, str]]:
    if record is None:
        return [("state", "record deleted"), ("id", job.job_id)]
    state = with_substitutes(record.state.word, read_substitutes(home, record.job_id))
    rows = [("state", state), ("id", record.job_id)]
    if reason := results.why(record) or read_wait(home, record.job_id):
        rows.append(("error" if record.error_message else "waits", reason))
    if isinstance(record, TuningRecord):
        return rows + _tuning_rows(home, record)
    if record.state.word == SUCCEEDED:
        numbers = results.metrics(record)
        rows += [(name, f"{value:.6g}") for name, value in numbers.items()]
        if where := results.artifacts(home, record):
            rows += [("artifacts", where[0]), ("", where[1])]
    return rows


def _tuning_rows(home: Home, tuning: TuningRecord) -> list[tuple[str, str]]:
    trials = TuningTable(home.database).trials(tuning.job_id)
    over = sum(trial.state.over for trial in trials)
    rows = [("trials", f"{over} of {tuning.max_trials}")]
    best = best_trial(tuning, trials)
    if best is None or best.measurement is None:
        return rows
    rows.append(("best trial", str(best.number)))
    rows += [(name, f"{value:.6g}") for name, value in best.measurement.metrics.items()]
    rows += [(name, to_text(value)) for name, value in best.parameters.items()]
    if base := tuning.output_prefix:
        folder = home.storage / base.removeprefix("gs://") / str(best.number)
        rows += [("artifacts", f"{base}/{best.number}/"), ("", str(folder))]
    return rows


_POLL_SECONDS: Final = 0.25
_FAILED_TAIL_LINES: Final = 20
_TAIL_BYTES: Final = 16_000


def watch(home: Home, jobs: JobRecords, wanted: Sequence[StackJob]) -> None:
    """Print each state of the jobs until all have ended or their records were deleted."""
    shown: dict[str, str] = {}

    def show(name: str, record: LocalJob) -> None:
        if shown.get(name) != record.state:
            replaced = read_substitutes(home, record.job_id) if record.state.terminal else []
            state = with_substitutes(record.state.word, replaced)
            print(f"job {name} ({record.job_id}): {state}", flush=True)
            shown[name] = record.state

    while live := _live_jobs(home, jobs, wanted):
        for name, record in live:
            show(name, record)
        time.sleep(_POLL_SECONDS)
    for job in wanted:
        if record := jobs.get(job.job_id):
            show(job.name, record)
            if record.error_message:
                print(f"\nend of the log of {job.name}:")
                print("\n".join(tail(home, record, _FAILED_TAIL_LINES)))


def tail(home: Home, record: LocalJob, lines: int) -> list[str]:
    """Return the last lines of the log of the job's first replica."""
    try:
        with log_file(home, record).open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - _TAIL_BYTES))
            written = [line.decode(errors="replace") for line in log]
    except FileNotFoundError:
        return []
    # A progress bar overwrites its line: only the last text of each line is shown.
    return [plain(line.rstrip("\r\n").rpartition("\r")[2]) for line in written][-lines:]


def _live_jobs(
    home: Home, jobs: JobRecords, wanted: Sequence[StackJob]
) -> list[tuple[str, LocalJob]]:
    running = [(job.name, record) for job in wanted if (record := jobs.get(job.job_id))]
    live = [(name, record) for name, record in running if not record.state.terminal]
    if live and lifecycle.running(home) is None:
        raise LocalCloudError(
            f"the local cloud stopped while {len(live)} jobs were running.",
            "start the local cloud again with `vt local start`.",
        )
    return live


Run = Callable[[str], int]
SUFFIX: Final = "-endpoint"
#: First line of a stack file that this command may overwrite.
MARK: Final = "# Written by `vt local up"
#: Sections of FILE that are deployed after the runs of the stack have succeeded.
LATER: Final = ("models", "endpoints")
#: File with the script's predictions in the folder of the model.
OWN: Final = "predictions.jsonl"
ROWS: Final = 100
#: Maximum difference between equal predictions, for example by another order of additions.
TOLERANCE: Final = 1e-6
_IMAGE: Final = re.compile(r"\$\{images\.([a-z0-9-]{1,63})\}")
_ENTRYPOINT: Final = re.compile(r"^ENTRYPOINT (\[.*\])$", re.MULTILINE)
#: Image of a container whose command runs on this host. The image is never pulled.
_NO_IMAGE: Final = f"us-docker.pkg.dev/this-machine/none/none@sha256:{'0' * 64}"


def run_with_endpoints(home: Home, stack: str, added: Path, train: Run, bring_up: Run) -> int:
    """Return the exit code of ``train`` or ``bring_up``, or 1 if predictions differ."""
    ref = stacks.find(stack, home.repo)
    config, served = read_config(ref, added), f"{stack}{SUFFIX}"
    file = ref.root / file_name(served)
    # During the training, the stack keeps the models and endpoints that it serves.
    later = {_key(section) for section in LATER}
    before = stacks.read_stack_file(ref.root, served)["config"] if file.exists() else {}
    kept = {key: before[key] for key in later & before.keys()}
    write(file, stack, {key: value for key, value in config.items() if key not in later} | kept)
    if code := train(served):
        return code
    images = config[_key("images")]
    for model in config[_key("models")].values():
        match = _IMAGE.fullmatch(str(model.get("container")))
        if match and match[1] in images and "digest" not in images[match[1]]:
            model["container"] = on_host(ref.root, images[match[1]])
    write(file, stack, config)
    if code := bring_up(served):
        return code
    return _show_endpoints(home, stacks.find(served, home.repo), config)


def read_config(ref: StackRef, added: Path) -> dict[str, Any]:
    """Return the config of the stack that trains and serves the model."""
    if not ref.is_local:
        raise CommandError(f"stack {ref.stack} is not a stack of the local cloud.")
    config = copy.deepcopy(stacks.read_stack_file(ref.root, ref.stack).get("config") or {})
    try:
        sections = yaml.safe_load(added.read_text("utf-8"))["config"]
        for key in dict.fromkeys([*sections, *map(_key, ("images", *LATER))]):
            config[key] = {**(config.get(key) or {}), **sections[key]}
    except OSError as error:
        raise CommandError(f"cannot read {added}: {error.strerror}.") from None
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        text = f"{added} must have the form of a stack file with images, models and endpoints."
        raise CommandError(text, "see the example in docs/serving.md") from error
    return config


def write(file: Path, source: str, config: Mapping[str, Any]) -> None:
    """Replace the stack file atomically; refuse a file that this command did not write."""
    if file.exists() and not file.read_text("utf-8", errors="replace").startswith(MARK):
        text = f"{file.name} exists, and this command did not write the file."
        raise CommandError(text, f"rename {file.name}.")
    head = (
        f"{MARK}` from Pulumi.{source}.yaml. Each run overwrites this file: edit "
        f"Pulumi.{source}.yaml instead.\n"
    )
    text = head + yaml.safe_dump({"config": dict(config)}, sort_keys=False, allow_unicode=True)
    RootDirectory(file.parent).write(file.name, text.encode())


def _key(section: str) -> str:
    return f"{SCHEMA.namespace}:{section}"


def on_host(root: Path, image: Mapping[str, Any]) -> dict[str, Any]:
    """Return a serving container that runs the ENTRYPOINT of a Dockerfile on this host."""
    text = (root / image["context"] / image.get("dockerfile", "Dockerfile")).read_text("utf-8")
    match = _ENTRYPOINT.search(text)
    words = json.loads(match[1]) if match else []
    if words[:1] != ["python"]:
        text = f"the ENTRYPOINT of {image['context']} is not python, so it cannot run on this host."
        raise CommandError(text, "build the image with `vt images build`, and set its digest.")
    folders = [(root / pattern).parent for pattern in image.get("include", ())]
    path = ":".join(dict.fromkeys(map(str, folders)))
    return {
        "image": _NO_IMAGE,
        "command": [sys.executable, *words[1:]],
        "env": {"PYTHONPATH": path},
    }


def _show_endpoints(home: Home, ref: StackRef, config: Mapping[str, Any]) -> int:
    """Print each endpoint's predictions beside the script's. Return 1 if they differ, else 0."""
    from vertex_training_cli.serving import endpoints, service
    from vertex_training_cli.serving.endpoints import Batch

    ref.connect_clients()
    differ = 0
    for key, entry in config[_key("endpoints")].items():
        model = entry.get("model", key)
        own = _own_predictions(home, ref, config[_key("models")][model], model)
        endpoint = service.Endpoints(ref).find(key)
        facts = [("id", endpoint.name.rpartition("/")[2])]
        if own:
            asked = endpoints.sender(ref, endpoint)(Batch(1, [row["instance"] for row in own]))
            pairs = zip(asked, own, strict=True)
            largest = max(abs(answer - row["prediction"]) for answer, row in pairs)
            equal = largest <= TOLERANCE
            differ += not equal
            verdict = "equal to" if equal else "DIFFERENT FROM"
            text = f"{len(own)}, {verdict} the script's predictions (at most {largest:.1g} apart)"
            facts.append(("predictions", text))
        console().print()
        show_facts(console(), ("ENDPOINT", key), facts)
    return 1 if differ else 0


def _own_predictions(
    home: Home, ref: StackRef, model: Mapping[str, Any], key: str
) -> list[dict[str, Any]]:
    job_name, records = model.get("job", key), JobRecords(home)
    for job in results.read_state(home, ref.pulumi_project, ref.stack).jobs:
        record = records.get(job.job_id) if job.name == job_name else None
        where = results.artifacts(home, record) if record else None
        file = Path(where[1], model.get("artifacts", "model"), OWN) if where else None
        if file and file.is_file():
            return [json.loads(line) for line in file.read_text("utf-8").splitlines()[:ROWS]]
    return []
