"""Read passengers from CSV, keep those with a known age, and write a snapshot in Parquet.

    python pipeline.py --input passengers.csv --output FOLDER               on this machine
    python pipeline.py --input gs://… --output gs://…/NEW_FOLDER --runner DataflowRunner
        --project P --region R --temp_location gs://…/tmp --service_account_email A

The snapshot is complete when the program ends: its manifest is written last. Use a new folder for
each ``--output``.
"""

# Beam is in a separate environment, and its pipelines are expressions.
# pyright: reportMissingImports=false, reportUnusedExpression=false
from __future__ import annotations

import argparse
import csv

import apache_beam as beam
import pyarrow as pa
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from vertex_job import snapshot

SCHEMA = pa.schema([("survived", pa.int64()), ("sex", pa.string()), ("age", pa.float64())])
#: The same schema with BigQuery's types, for the manifest.
FIELDS = [
    {"name": "survived", "type": "INTEGER", "mode": "REQUIRED"},
    {"name": "sex", "type": "STRING", "mode": "REQUIRED"},
    {"name": "age", "type": "FLOAT", "mode": "REQUIRED"},
]


class Parse(beam.DoFn):
    """Convert a line of CSV to a row. Skip lines without an age."""

    def __init__(self) -> None:
        self.rows = Metrics.counter("snapshot", "rows")

    def process(self, line: str):
        survived, sex, age = next(csv.reader([line]))
        if age:
            self.rows.inc()
            yield {"survived": int(survived), "sex": sex, "age": float(age)}


def main() -> None:
    """Run the pipeline until it ends, then write the manifest."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    ours, beams = parser.parse_known_args()
    pipeline = beam.Pipeline(options=PipelineOptions(beams))
    (
        pipeline
        | beam.io.ReadFromText(ours.input, skip_header_lines=1)
        | beam.ParDo(Parse())
        | beam.io.WriteToParquet(
            f"{ours.output}/part", SCHEMA, file_name_suffix=".parquet", num_shards=2
        )
    )
    result = pipeline.run()
    result.wait_until_finish()  # raises if the pipeline failed, so no snapshot is written
    [rows] = result.metrics().query(MetricsFilter().with_name("rows"))["counters"]
    made = snapshot.write(
        ours.output,
        name="passengers",
        rows=rows.committed,
        schema=FIELDS,
        source={"input": ours.input, "pipeline": "pipeline.py"},
    )
    print(f"{ours.output}: {rows.committed} rows in {len(made.files)} files")


if __name__ == "__main__":
    main()
