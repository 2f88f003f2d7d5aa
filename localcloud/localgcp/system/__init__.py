"""Calls of the operating system.

==================  ===============================================================
``processes``       children and their descendants: notes of them, and their end
``root_directory``  files opened below a folder, without following a link out of it
``folders``         makes and deletes folders
``git``             runs git without the settings of a user
``namespaces``      namespaces and mounts of Linux
``ports``           ports of 127.0.0.1 for servers
``gpus``            GPUs of this machine, and locks on them
``threads``         threads that do not keep the process
==================  ===============================================================
"""
