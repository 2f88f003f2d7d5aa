"""A declarative CustomJob: from a file under ``jobs/`` to one submission on Vertex AI.

=================  ================================================================
``document``       YAML with the place of every value; ``values`` builds them
``shape``          is it the API's message: fields, types, oneofs
``hints``          what to write instead of what is no field, value or duration
``rules``          does it make sense: what the service would refuse or regret
``judging``        runs the rules, and finds the place of each mistake in the file
``spec``           job file + references -> request, all mistakes at once
``submission``     one request, one job: the protocol, over two ports
``withdrawal``     a job leaves the stack: cancel, wait, free its record
``ports``          what it asks of a job service and of a store of records
``client``         the Vertex AI calls, their retries and error texts
``intent_store``   the records, as objects in the control bucket
``provider``       check, diff, create, read, update, delete (state names this path)
``resource``       ``CustomJob``, what the program declares
=================  ================================================================

All but ``client``, ``intent_store``, ``provider`` and ``resource`` are pure: they import neither
Google's libraries nor Pulumi, so that a job file is judged in milliseconds.
"""
