"""Rules across the keys of a stack file. Pure.

===================  =================================================================
``names``            names and numbers that Google Cloud would refuse; unknown keys
``extra_grants``     ``members``, ``roles``, ``datasets``; limits of deployers
``existing``         ``existing`` and ``name``: what is not the stack's, and names given twice
``retention``        what a stack could no longer do where nothing can be deleted; where its key is
``teams``            the section ``teams``: what a team owns
``files``            files that the stack file names, and secrets in what a stack sends
``code``             code that talks to BigQuery in nobody's project
``snapshots``        the section ``snapshots``: one query each, and its parameters
``network``          the sections ``network`` and ``sharedVpc``
``reservations``     the section ``reservations``
``serving``          the sections ``models`` and ``endpoints``; endpoints on TPUs
``alerts``           the sections ``channels``, ``alerts`` and ``budget``: whom alerts reach
``job_rules``        ``jobDefaults`` and ``rules``: known references and rules; ladders
``limits``           the section ``limits``, for the stack as a whole
``advice``           warnings: valid, but a surprise to the stack's owner
===================  =================================================================
"""
