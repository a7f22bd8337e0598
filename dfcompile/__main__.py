"""``python -m dfcompile`` is the command."""

import sys

from dfcompile.cli import main

sys.exit(main())
