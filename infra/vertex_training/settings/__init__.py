"""Models of stack files, and their reader.

=================  =================================================================
``section``        base of all sections
``model``          the whole stack file; larger sections have separate modules
``network``        sections ``network``, ``sharedVpc`` and ``reservations``
``serving``        sections ``models`` and ``endpoints``
``cron``           slots of a schedule
``alerts``         sections ``channels``, ``alerts``, ``budget`` and ``dashboards``
``limits``         ``limits``, ``teams``, ``jobDefaults``; ladder, schedule and model of a job
``reader``         config -> settings, or their valid part; first keys of renamed entries
``stack_files``    config from files, with ``include`` and ``overrides``; places of problems
``project_files``  the stacks of a project
=================  =================================================================
"""
