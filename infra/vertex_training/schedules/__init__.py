"""Jobs that are submitted again and again, each slot once (docs/jobs.md).

================  =====================================================================
``deployed``      a schedule as the state has it, and the request of each of its slots
``slots``         which slot is due, what waits and what was missed; ends a schedule
``provider``      ``JobSchedule``, which the program declares, and its dynamic provider
================  =====================================================================

The slots of a cron line are ``vertex_training.settings.cron``'s, submissions those of
``vertex_training.customjob.protocol``.
"""
