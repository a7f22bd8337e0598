"""``python -m dfcompile`` is the command."""

import sys

from dfcompile.cli.main import main

sys.exit(main())
