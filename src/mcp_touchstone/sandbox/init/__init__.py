"""A program that runs a command in a sandbox and behaves like that command. Linux only.

``sandbox.wrap`` writes its command line. It is run with ``python -I -S``, and each part imports
only what it needs: its start-up time is added to every start of a server. The parts:

- *outside*: the process that the caller sees. It passes signals on, and it ends with the status
  or by the signal of the command.
- *inside*: process 1 of the sandbox. It starts the command as process 2, reaps orphans, and
  reports how the command ended.
- *network*: it listens in the network of a sandbox, or makes sockets there, for its caller.

With ``bwrap`` the outside starts bubblewrap, which starts the inside. With ``unshare`` the
outside makes the namespaces itself and forks; *mounts* understands the same options.
"""
