"""The command line of Interlock. The product itself lives in ``router``, ``training`` and ``serve``."""
