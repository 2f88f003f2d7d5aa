"""The training of ``titanic`` by a logistic regression in numpy: an image of 100 MB, not of 5 GB.

Takes the place of ``jobs/titanic/task.py`` in a copy of the checkout. Data, features, arguments and
storage are the job's own.
"""

# These are modules of the job.
# pyright: reportMissingImports=false
import sys

import numpy as np
from titanic import features, report
from titanic.arguments import parse_arguments
from titanic.data import load_split
from titanic.storage import join, write_bytes

CODE = "first"


def main() -> None:
    """Train on one split, measure on all."""
    args = parse_arguments()
    names = {"train": args.train, "validation": args.val, "test": args.test}
    splits = {name: load_split(uri) for name, uri in names.items()}
    fitted = features.fit(splits["train"].columns)
    inputs = {name: features.transform(split.columns, fitted) for name, split in splits.items()}
    inputs = {name: np.hstack([each, np.ones((len(each), 1))]) for name, each in inputs.items()}
    rows, survived = inputs["train"], splits["train"].survived
    weights = np.zeros(rows.shape[1])
    for _ in range(2000):
        error = 1 / (1 + np.exp(-rows @ weights)) - survived
        weights -= 0.5 * (rows.T @ error / len(rows) + 0.001 * weights)
    metrics = {
        f"{name}_accuracy": float(((inputs[name] @ weights > 0) == (split.survived > 0)).mean())
        for name, split in splits.items()
    }
    print(f"trained by the {CODE} code", flush=True)
    document = report.metrics_json(metrics, {"code": CODE})
    write_bytes(join(args.output_dir, "metrics.json"), document, "application/json")


if __name__ == "__main__":
    sys.exit(main())
