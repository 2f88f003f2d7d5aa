"""Rules across the keys of a stack file. Pure.

===================  =================================================================
``names``            names that Google Cloud would refuse, ``formerly``; keys of what is not there
``encryption``       the section ``encryption``
``extra_grants``     ``members``, ``roles``, ``datasets``: no grant twice, no basic role
``existing``         ``existing`` and ``name``: what is not the stack's, and names given twice
``retention``        what a stack could no longer do where nothing can be deleted
``teams``            the section ``teams``: what a team owns
``files``            files that the stack file names
``leaving_files``    no secret is in what a stack sends
``code``             code that talks to BigQuery in nobody's project
``snapshots``        the section ``snapshots``: one query each, and its parameters
``project_numbers``  numbers that are not their project's
``network``          the sections ``network`` and ``sharedVpc``
``reservations``     the section ``reservations``
``serving``          the sections ``models`` and ``endpoints``
``alerts``           the sections ``channels``, ``alerts`` and ``budget``: whom alerts reach
``serving_tpus``     endpoints on TPUs
``job_rules``        ``jobDefaults`` and ``rules``: references and rules that are there
``ladder``           ladders of jobs, whose rungs may name reservations
``limits``           the section ``limits``, for the stack as a whole
``deployers``          what a deployment is refused: accounts, names and roles
``advice``           warnings: valid, but a surprise to the stack's owner
===================  =================================================================
"""
