"""What a stack file may say: models of its sections, and what reads them from a file.

=================  =================================================================
``section``        the base of all sections
``model``          the whole stack file; its larger sections have modules of their own
``network``        the sections ``network`` and ``sharedVpc``
``reservations``   the section ``reservations``
``job_defaults``   ``jobDefaults``: what job files may leave out
``limits``         the section ``limits``
``teams``          the section ``teams``
``drift``          the section ``drift``
``encryption``     the section ``encryption``
``includes``       files that several stack files share
``renames``        keys that changed, and the keys that names keep
``reader``         config -> settings; refuses unknown keys and encrypted values
``partial``        as much of a wrong config as is valid, so that rules judge the rest
``stack_files``    reads a stack's config from its files, for tools without an engine
``project_files``  which stacks a project has
``locations``      where in a stack file a mistake stands
=================  =================================================================
"""
