"""Check many servers: read a list, install and check each server apart, write a row for each.

1. ``servers`` reads a list into entries. An entry that cannot be started has a ``Trouble``: a class
   and a line.
2. ``drive`` takes the entries without a row and gives each to a pool: threads, or the workers of a
   Dask cluster. A thread only waits for processes.
3. ``install`` runs a package manager in a sandbox with the network, and finds the program as
   ``npx`` and ``uvx`` do. For a server in an image, ``containers`` pulls the image and returns the
   command of a container.
4. ``judge`` runs ``check`` in a process of its own, with a sandbox for the server, and makes the
   row from the report. A ``check`` that a fleet started ends with the fleet
   (``transport.orphans.end_with_parent``).
5. ``drive`` appends the row and waits until it is on the disk. Without a report the row is
   ``harness``, and the server is tried again.
6. ``report`` reads the rows one at a time and keeps counts only.
"""
