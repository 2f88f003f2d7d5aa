"""The ports of models and endpoints over Google's official clients.

===============  ===========================================================
``serving_api``  the names of the clients that are used here
``operations``   long operations, and what their errors mean
``registry``     models and their versions; jobs by their labels, and their folders
``endpoints``    endpoints, and what is deployed there
===============  ===========================================================
"""
