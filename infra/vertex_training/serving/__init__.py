"""Model versions made of what runs left, and the versions that endpoints serve.

============  ======================================================================
``declared``  what a stack declares of both, with the identities that follow; pure
``protocol``  one request, one version; one endpoint, brought to what is declared; pure
``google``    the model registry, endpoints and runs, by official clients
``provider``  the three dynamic providers (the state names them)
``resource``  their resources, as the program declares them
============  ======================================================================
"""
