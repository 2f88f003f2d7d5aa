"""Model versions from artifacts of runs, and endpoints that serve them.

============  ======================================================================
``declared``  declared versions and endpoints, with their identities; pure
``protocol``  uploads each version once; updates endpoints to their declaration; pure
``google``    calls of the model registry, endpoints and runs, with Google's clients
``provider``  the three dynamic providers; states contain their names
``resource``  the resources of these providers
============  ======================================================================
"""
