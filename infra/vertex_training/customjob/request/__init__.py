"""From a job file to the CustomJob message. Pure.

===================  =================================================================
``job_file``         job file and references -> request, all mistakes at once
``message``          the document as the API's message: fields, types, oneofs
``rungs``            what a rung of a job's ladder has otherwise than its file
``references``       ``${kind.name}`` in a text
``checking``         runs the rules, places each finding, applies ``# vt: ignore[rule] reason``
``hints``            what to write in place of what is wrong
===================  =================================================================
"""
