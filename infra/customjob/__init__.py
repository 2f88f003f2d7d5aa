"""A declarative CustomJob: from a file under ``jobs/`` to one submission on Vertex AI.

=================  ================================================================
``document``       YAML with the place of every value
``shape``          is it the API's message: fields, types, oneofs
``rules``          does it make sense: what the service would refuse or regret
``spec``           job file + references -> request, all mistakes at once
``submission``     which job belongs to a request: adopt, refuse or send
``client``         the Vertex calls behind a small protocol, retries, error texts
``provider``       check, diff, create, read, update, delete (state names this path)
``resource``       ``CustomJob``, what the program declares
=================  ================================================================

All but ``client`` and ``provider`` are pure: they import neither Google's libraries nor Pulumi's
resources, so that a job file is judged in milliseconds.
"""
