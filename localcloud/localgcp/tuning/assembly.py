"""Tuning jobs of one local cloud, put together."""

from __future__ import annotations

from localgcp.home import Home
from localgcp.tuning.driver import TuningDriver
from localgcp.tuning.records import TuningTable
from localgcp.tuning.service import TuningService
from localgcp.vertex.service import JobService


class Tuning:
    """The table of tuning jobs, and what drives them."""

    def __init__(self, home: Home) -> None:
        self.home, self.table = home, TuningTable(home.database)
        self._driver: TuningDriver | None = None

    def trial_id(self, job_id: str) -> str | None:
        """The id of the trial that a CustomJob runs; None if it runs none."""
        trial = self.table.trial_of(job_id)
        return str(trial.number) if trial else None

    def trials(self, tuning_id: str) -> list[tuple[str, str]]:
        """Each trial of a tuning job: its id, and that of its CustomJob."""
        return [(str(each.number), each.job_id) for each in self.table.trials(tuning_id)]

    def is_trial(self, job_id: str) -> bool:
        """Does this CustomJob run a trial?"""
        return self.table.trial_of(job_id) is not None

    def start(self, jobs: JobService) -> TuningService:
        """Go on with what an earlier server left; returns what serves tuning jobs.

        The scheduler has begun.
        """
        self._driver = TuningDriver(self.home, self.table, jobs.jobs, jobs.scheduler)
        self._driver.start()
        return TuningService(jobs, self.table, self._driver)

    def stop(self) -> None:
        """Start no further trial; trials that run are the scheduler's to end."""
        if self._driver:
            self._driver.stop()
