"""Convert a job file into a CustomJob message. Pure.

===================  =================================================================
``job_file``         job file, references and rungs -> request and all mistakes
``message``          document -> API message: fields, types, oneofs; ``${kind.name}``
``checking``         runs the rules, locates findings, applies ``# vt: ignore[rule] reason``
``hints``            hints for malformed files
===================  =================================================================
"""
