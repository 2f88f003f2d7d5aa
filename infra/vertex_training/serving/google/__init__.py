"""Implementations of the ports for models and endpoints, with Google's official clients.

===============  ===========================================================
``operations``   names of the clients; long operations and hints for their errors
``registry``     models and versions; jobs by label, and their folders
``endpoints``    endpoints and their deployed models
===============  ===========================================================
"""

import vertex_training.customjob.google  # noqa: F401  (loads the base of Google's clients first)
