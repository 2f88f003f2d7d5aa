"""Training job: ``python -m titanic.task --train URI --val URI [--test URI] ...``.

All artifacts of a run go together into one directory, AIP_MODEL_DIR unless --output-dir is given:
``model.pt``, ``model.json`` (the same without PyTorch: ``titanic.serve`` loads it),
``predictions.jsonl`` (of the held-out passengers), ``eval_history.csv``, ``curves.png``,
``training.log`` and, last, ``metrics.json``, which is therefore there only if the run is complete.
A run that fails leaves ``training.log``.

Exit codes: 0 trained, 1 failed for a reason that is printed, 2 wrong usage.
"""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import platform
import sys
import time
from typing import Any

import torch
from torch.nn import functional

from titanic import features, model, portable, report
from titanic.arguments import parse_arguments
from titanic.data import Split, load_split
from titanic.errors import JobError
from titanic.joblog import JobLog
from titanic.storage import join, write_bytes
from titanic.training import Examples, Hyperparameters, make_reproducible, pick_device, train

log = logging.getLogger("titanic.task")


def main(argv: list[str] | None = None) -> int:
    """Run the job; return the exit code."""
    args = parse_arguments(argv)
    job_log = JobLog()
    try:
        run(args, job_log)
    except JobError as error:
        log.error("%s", error)
        _save_log_of_failure(args.output_dir, job_log)
        return 1
    return 0


def run(args: argparse.Namespace, job_log: JobLog) -> None:
    """Train, test, and write every artifact to ``args.output_dir``.

    Raises:
        JobError: the data, the arguments or the permissions do not allow it.
    """
    started = time.monotonic()
    params = _hyperparameters(args)
    make_reproducible(params.seed)
    device = pick_device()
    log.info("hyperparameters: %s", dataclasses.asdict(params))
    log.info("device: %s, torch %s", _device_name(device), torch.__version__)
    splits = {"train": load_split(args.train), "validation": load_split(args.val)}
    if args.test:
        splits["test"] = load_split(args.test)
    log.info("passengers: %s", {name: len(split) for name, split in splits.items()})

    fitted = features.fit(splits["train"].columns)
    log.info("inputs: %s", ", ".join(fitted.feature_names))
    net, history = train(
        _examples(splits["train"], fitted, device),
        _examples(splits["validation"], fitted, device),
        params,
    )
    classifier = model.Classifier(net, fitted)
    content = classifier.dump()
    metrics = _metrics(splits, history, content, params)
    run_info = {
        "device": _device_name(device),
        "duration_seconds": round(time.monotonic() - started, 3),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "train": args.train,
        "validation": args.val,
        "test": args.test,
    }
    models = {"model.pt": content, "model.json": classifier.portable().dump()}
    predictions = _predictions(content, splits.get("test", splits["validation"]))
    files = models | {"predictions.jsonl": predictions}
    _write_artifacts(args.output_dir, files, history, metrics, run_info, job_log)
    if "CLOUD_ML_TRIAL_ID" in os.environ:
        _report(metrics)


def _report(metrics: dict[str, Any]) -> None:
    """Report the validation metrics to the tuning job, without the test split."""
    try:
        from vertex_job.metrics import report_metric
    except ModuleNotFoundError:
        raise JobError(
            "this trial cannot report its metric: vertex_job is not installed. "
            'Hint: add "${packages.vertex-job}" to packageUris'
        ) from None
    report_metric("accuracy", metrics["validation_accuracy"], metrics["best_epoch"])


def _hyperparameters(args: argparse.Namespace) -> Hyperparameters:
    names = [field.name for field in dataclasses.fields(Hyperparameters)]
    return Hyperparameters(**{name: getattr(args, name) for name in names})


def _examples(split: Split, fitted: features.Preprocessing, device: torch.device) -> Examples:
    inputs = torch.from_numpy(features.transform(split.columns, fitted))
    return Examples(inputs.to(device), torch.from_numpy(split.survived).to(device))


def _metrics(
    splits: dict[str, Split], history: list[report.Epoch], content: bytes, params: Hyperparameters
) -> dict[str, Any]:
    """Compute metrics of the saved model, which users will load."""
    classifier = model.load(content)
    best = report.best_epoch(history)
    metrics: dict[str, Any] = {}
    for name, split in splits.items():
        loss, accuracy = _score(classifier, split)
        metrics[f"{name}_loss"], metrics[f"{name}_accuracy"] = loss, accuracy
        log.info("%s: loss %.4f, accuracy %.4f", name, loss, accuracy)
    metrics.update({f"{name}_size": len(split) for name, split in splits.items()})
    metrics.update(epochs_run=len(history), best_epoch=best.number)
    metrics["hyperparameters"] = dataclasses.asdict(params)
    return metrics


def _score(classifier: model.Classifier, split: Split) -> tuple[float, float]:
    probabilities = classifier.probabilities(split.columns)
    labels = torch.from_numpy(split.survived)
    loss = functional.binary_cross_entropy(probabilities, labels).item()
    correct = (probabilities > model.THRESHOLD) == (labels > 0)
    return loss, correct.double().mean().item()


def _predictions(content: bytes, split: Split) -> bytes:
    probabilities = model.load(content).probabilities(split.columns)
    return portable.predictions_jsonl(split.columns, probabilities.tolist())


def _write_artifacts(
    directory: str,
    files: dict[str, bytes],
    history: list[report.Epoch],
    metrics: dict[str, Any],
    run_info: dict[str, Any],
    job_log: JobLog,
) -> None:
    curves = report.curves_png(history)
    for name, content in files.items():
        write_bytes(join(directory, name), content, "application/octet-stream")
    write_bytes(join(directory, "eval_history.csv"), report.history_csv(history), "text/csv")
    write_bytes(join(directory, "curves.png"), curves, "image/png")
    log.info("artifacts: %s", directory)
    write_bytes(join(directory, "training.log"), job_log.content(), "text/plain")
    document = report.metrics_json(metrics, run_info)
    write_bytes(join(directory, "metrics.json"), document, "application/json")


def _save_log_of_failure(directory: str, job_log: JobLog) -> None:
    """Save the log beside the model's path after a failure, without hiding the first error."""
    try:
        write_bytes(join(directory, "training.log"), job_log.content(), "text/plain")
    except JobError as error:
        log.error("training.log could not be saved: %s", error)


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


if __name__ == "__main__":
    sys.exit(main())
