"""Stand-in for BigQuery: DuckDB executes queries, loads and exports.

==============  ==========================================================================
``service``     the methods of the REST API
``jobs``        runs jobs, and restarts the jobs of a killed server
``catalog``     datasets, tables and jobs as rows of SQLite; checks of requests
``engine``      the program that executes one job, in a separate Python environment
==============  ==========================================================================
"""

from pathlib import Path
from typing import Final

from localgcp.home import ToolEnvironment

#: File with the engine's packages by hash (requirements/bigquery.in).
PINS: Final = Path(__file__).with_name("packages.txt")


def engine_environment() -> ToolEnvironment:
    """Return the engine's Python environment, which ``vt local bigquery --install`` creates."""
    return ToolEnvironment("bigquery", PINS)
