"""The ports of models and endpoints over Google's official clients.

===============  ===========================================================
``serving_api``  the names of the clients that are used here
``operations``   long operations, and what their errors mean
``registry``     models and their versions
``endpoints``    endpoints, and what is deployed there
``runs``         jobs by their labels, and the folders that they left
===============  ===========================================================
"""
