"""``python -m dagsched``."""

from __future__ import annotations

import sys

from dagsched.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
