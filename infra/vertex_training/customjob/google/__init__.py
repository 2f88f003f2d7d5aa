"""The ports of the protocol, and logs, over Google's official clients.

Functions import Google's libraries when called: most operations on a stack submit nothing.

=================  ===================================================================
``job_service``    the Vertex AI calls, their retries and error messages
``batch_service``  the calls of Google Batch, whose jobs are read as CustomJobs
``backends``       the jobs of a region, whichever service runs them
``intent_store``   intent and turn records, as objects in the control bucket
``prerequisites``  permissions, images, reservations and quota, before a job is cancelled
``logs``           log lines of a job's replicas
``utilization``    how much the accelerators of a job do
``vertex_api``     the part of Google's client that is used here
``impersonation``  credentials of the account that the environment names
``lazy_package``   imports a package without running its code
=================  ===================================================================
"""

# Here, so that one thread loads them while the others wait for this package. If one thread imports
# a package and another its submodule, each waits for the other, and Python raises _DeadlockError.
# Providers load Google's clients on several threads.
import google.api_core.exceptions
import google.api_core.retry
import google.auth.exceptions  # noqa: F401
