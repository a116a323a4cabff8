"""Run the command as ``python -m sojourn``."""

import sys

from sojourn.cli import main

sys.exit(main())
