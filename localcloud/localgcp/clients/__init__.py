"""Settings that let unmodified clients use the local cloud.

====================  ==================================================================
``cloud_sdk``         ``gcloud`` and ``gsutil``: their environment and settings
``python_clients``    Google's clients for Python: their address and credentials
``log_filters``       filters of Cloud Logging
====================  ==================================================================
"""
