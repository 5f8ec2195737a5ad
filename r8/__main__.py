"""`python -m r8`: the `r8` command without installing anything."""

import sys

from r8.cli.entry import main

sys.exit(main())
