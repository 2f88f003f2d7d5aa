"""Stand-in for BigQuery: DuckDB executes queries, loads and exports.

==============  ==========================================================================
``service``     methods of REST, and who may call them
``checks``      what a request must have; who may ask, read and write
``jobs``        jobs, carried out one after the other also where a server was killed
``catalog``     datasets, tables and jobs as rows of SQLite
``engine``      a program in an environment of its own that does a job's work
==============  ==========================================================================
"""

from pathlib import Path
from typing import Final

from localgcp.home import ToolEnvironment

#: The engine's packages by hash (requirements/bigquery.in).
PINS: Final = Path(__file__).with_name("packages.txt")


def engine_environment() -> ToolEnvironment:
    """Return the engine's Python environment, which ``vt local bigquery --install`` creates."""
    return ToolEnvironment("bigquery", PINS)
