"""Rules across the keys of a stack file. Pure.

===================  =================================================================
``names``            names that Google Cloud would refuse; keys of what is not there
``renames``          ``formerly``: each name in the cloud belongs to one entry
``existing``         ``existing`` and ``name``: what is not the stack's, and names given twice
``teams``            the section ``teams``: what a team owns
``files``            files that the stack file names
``project_numbers``  numbers that are not their project's
``network``          the sections ``network`` and ``sharedVpc``
``reservations``     the section ``reservations``
``job_rules``        ``jobDefaults`` and ``rules``: references and rules that are there
``limits``           the section ``limits``, for the stack as a whole
``advice``           warnings: valid, but a surprise to the stack's owner
===================  =================================================================
"""
