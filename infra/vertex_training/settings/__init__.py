"""What a stack file may say: models of its sections, and what reads them from a file.

=================  =================================================================
``section``        the base of all sections
``model``          the whole stack file; its larger sections have modules of their own
``network``        the sections ``network`` and ``sharedVpc``
``reservations``   the section ``reservations``
``serving``        the sections ``models`` and ``endpoints``
``schedules``      ``schedule`` of a job
``cron``           the slots of a schedule
``snapshots``      the section ``snapshots``
``ladder``         what a job asks for where there were no machines
``alerts``         the sections ``channels``, ``alerts``, ``budget`` and ``dashboards``
``limits``         the sections ``limits``, ``teams`` and ``jobDefaults``
``includes``       files that several stack files share
``renames``        keys that changed, and the keys that names keep
``reader``         config -> settings; refuses unknown keys and encrypted values
``overrides``      what a stack has otherwise than the files that it includes
``partial``        as much of a wrong config as is valid, so that rules judge the rest
``stack_files``    a stack's config from its files, with what they include
``project_files``  which stacks a project has
``locations``      where in a stack file a mistake stands
=================  =================================================================
"""
