"""Periodic submissions of jobs: one for each scheduled time (docs/jobs.md).

================  =====================================================================
``deployed``      a schedule in a state, and the requests of its slots
``slots``         due, waiting and missed slots; ends a schedule
``provider``      the resource ``JobSchedule`` and its dynamic provider
================  =====================================================================

``vertex_training.settings.cron`` computes the slots of a cron line, and
``vertex_training.customjob.protocol`` submits the jobs.
"""
