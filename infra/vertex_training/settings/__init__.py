"""The stack file: models of its sections, and the reader of files.

=================  =================================================================
``section``        the base of all sections
``model``          the whole stack file; its larger sections have modules of their own
``network``        the sections ``network``, ``sharedVpc`` and ``reservations``
``serving``        the sections ``models`` and ``endpoints``
``cron``           the slots of a schedule
``alerts``         the sections ``channels``, ``alerts``, ``budget`` and ``dashboards``
``gpu_memory``     ``model`` of a job: sizes of a transformer, and its peak of GPU memory
``limits``         what holds for jobs: ``limits``, ``teams``, ``jobDefaults``, ladders, schedules
``renames``        keys that changed, and the keys that names keep
``reader``         config -> settings, or as much of them as is valid
``stack_files``    a config from files, with ``include`` and ``overrides``; places of problems
``project_files``  which stacks a project has
=================  =================================================================
"""
