"""Clients that nobody here wrote: what they need to use the local cloud as it is.

====================  ==================================================================
``cloud_sdk``         ``gcloud`` and ``gsutil``: their environment and settings
``python_clients``    Google's clients for Python: their address and credentials
``log_filters``       filters of Cloud Logging
====================  ==================================================================
"""
