"""Where a person looks at a job and at its logs."""

from __future__ import annotations

from urllib.parse import quote

from infra.naming import is_local


def of_job(project: str, region: str, number: str) -> tuple[str, str]:
    """(console, logs): addresses, or commands where there is no console. ``number`` is its id."""
    if is_local(project):  # no console there; the commands that show the same
        return "vt local status", f"vt local logs {number}"
    console = "https://console.cloud.google.com"
    query = quote(f'resource.type="ml_job" resource.labels.job_id="{number}"', safe="")
    # The path since the product was renamed, as the official SDK prints it (2.7.0, jobs.py).
    job = f"{console}/agent-platform/locations/{region}/training/{number}?project={project}"
    return job, f"{console}/logs/query;query={query}?project={project}"
