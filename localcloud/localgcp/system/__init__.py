"""Calls of the operating system.

==================  ===============================================================
``processes``       child processes with their records; daemon threads
``root_directory``  files below a folder, opened without following links; folders
``git``             runs git without the settings of a user
``namespaces``      namespaces and mounts of Linux
``ports``           ports of 127.0.0.1 for servers
``gpus``            GPUs of this machine, and locks on them
==================  ===============================================================
"""
