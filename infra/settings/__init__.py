"""What a stack file may say: models of its sections, and what reads them from a file.

================  ====================================================================
``section``       what all sections have in common
``model``         the whole stack file; its larger sections are in ``network``,
                  ``reservations`` and ``limits``
``stack_file``    reads a stack's config from the engine and judges it
``stack_yaml``    reads it from the files alone, for tools without an engine
``project_files`` which stacks a project has
``locations``     where in a stack file a mistake stands
================  ====================================================================
"""
