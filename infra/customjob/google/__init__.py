"""Google's services as the protocol needs them, by the official clients.

Google's libraries are loaded inside of functions: most operations on a stack submit nothing.

=================  ===================================================================
``job_service``    the Vertex AI calls, their retries and the words for their errors
``intent_store``   records of submissions, as objects in the control bucket
``logs``           what the replicas of a job wrote
``vertex_api``     the part of Google's client that is used, with ``on_demand``
``console``        addresses where a person looks at a job
=================  ===================================================================
"""
