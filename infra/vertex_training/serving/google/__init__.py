"""The ports of models and endpoints over Google's official clients.

===============  ===========================================================
``operations``   names of the clients; long operations, and what their errors mean
``registry``     models and their versions; jobs by their labels, and their folders
``endpoints``    endpoints, and what is deployed there
===============  ===========================================================
"""

import vertex_training.customjob.google  # noqa: F401  (loads the base of Google's clients first)
