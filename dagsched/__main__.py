"""``python -m dagsched``, and the ``dagsched`` command: an interrupt is quiet from the first import on."""

from __future__ import annotations

import sys


def main() -> int:
    """The exit status of the process's own command line."""
    try:
        from dagsched.cli.main import main as run
    except KeyboardInterrupt:
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
