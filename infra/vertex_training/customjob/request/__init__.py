"""From a job file to the CustomJob message. Pure.

===================  =================================================================
``job_file``         job file, references and rungs -> request, all mistakes at once
``message``          the document as the API's message: fields, types, oneofs
``references``       ``${kind.name}`` in a text
``checking``         runs the rules, places each finding, applies ``# vt: ignore[rule] reason``
``hints``            what to write in place of what is wrong
===================  =================================================================
"""
