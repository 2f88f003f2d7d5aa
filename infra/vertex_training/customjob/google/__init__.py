"""Implementations of the protocol's ports, and access to logs, with Google's official clients.

Functions import Google's libraries when called: most operations on a stack submit nothing.

=================  ===================================================================
``job_service``    calls of Vertex AI, with retries and error messages
``backends``       calls of Google Batch; routes calls to Vertex AI or Batch
``intent_store``   intent and turn records: objects in the control bucket
``prerequisites``  permissions, images, reservations and quota, before a job is cancelled
``logs``           log lines and accelerator utilization of a job
``vertex_api``     the required part of Google's client
``impersonation``  credentials of an impersonated account
``lazy_package``   imports a package without running its code
=================  ===================================================================
"""

# Imported here, so that one thread loads these modules while other threads wait for this package.
# If one thread imports a package and another its submodule, the threads wait for each other, and
# Python raises _DeadlockError. Providers load Google's clients on several threads.
import google.api_core.exceptions
import google.api_core.retry
import google.auth.exceptions  # noqa: F401

from vertex_training.customjob.google import lazy_package

# Before any import of these packages: the services of Vertex AI that are not used load slowly.
for _package in ("google.cloud.aiplatform_v1", "google.cloud.aiplatform_v1.types"):
    lazy_package.register(_package)
