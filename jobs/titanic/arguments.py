"""Command line of the job, validated before any data is read."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the arguments; print mistakes to stderr and exit with code 2."""
    parser = argparse.ArgumentParser(
        prog="python -m titanic.task",
        description="Train a classifier of survival on the Titanic.",
        # An abbreviation that is unique today becomes ambiguous with the next option.
        allow_abbrev=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    data = parser.add_argument_group("data (gs:// URIs or paths)")
    data.add_argument("--train", required=True, help="training split, .npz")
    data.add_argument("--val", required=True, help="validation split, .npz, for early stopping")
    data.add_argument("--test", help="held-out test split, .npz, for metrics only")
    data.add_argument(
        "--output-dir", default=os.environ.get("AIP_MODEL_DIR"), help="folder of all artifacts"
    )
    positive_int, fraction = _number(int, above=0), _number(float, at_least=0, below=1)
    tuning = parser.add_argument_group("training")
    tuning.add_argument("--epochs", type=positive_int, default=200, help="maximum number of epochs")
    tuning.add_argument("--learning-rate", type=_number(float, above=0), default=0.001, help="step")
    tuning.add_argument("--batch-size", type=positive_int, default=32, help="passengers a step")
    tuning.add_argument(
        "--patience",
        type=positive_int,
        default=20,
        help="epochs without improvement until the training stops",
    )
    tuning.add_argument("--hidden", type=_widths, default=[32, 16], help="layer widths, like 32,16")
    tuning.add_argument("--dropout", type=fraction, default=0.2, help="fraction of dropped units")
    tuning.add_argument("--weight-decay", type=fraction, default=0.01, help="of AdamW")
    tuning.add_argument("--seed", type=_number(int, at_least=0), default=0, help="of everything")
    args = parser.parse_args(argv)
    if not args.output_dir:
        parser.error(
            "no output folder: AIP_MODEL_DIR is not set. Hint: give the job a "
            "baseOutputDirectory, or pass --output-dir"
        )
    return args


def _number(
    kind: Callable[[str], float],
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
) -> Callable[[str], float]:
    """Return a parser of numbers in a range, for argparse."""

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None
        if math.isinf(value):
            raise argparse.ArgumentTypeError(f"must be a finite number, got {text}")
        # Written so that NaN, which compares false with everything, is refused as well.
        if above is not None and not value > above:
            raise argparse.ArgumentTypeError(f"must be above {above}, got {text}")
        if at_least is not None and not value >= at_least:
            raise argparse.ArgumentTypeError(f"must be at least {at_least}, got {text}")
        if below is not None and not value < below:
            raise argparse.ArgumentTypeError(f"must be below {below}, got {text}")
        return value

    return parse


def _widths(text: str) -> list[int]:
    parse = _number(int, above=0)
    return [int(parse(part)) for part in text.split(",")]
