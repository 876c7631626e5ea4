"""``python -m sparsistent`` is the command line."""

import sys

from sparsistent.cli import main

if __name__ == "__main__":
    sys.exit(main())
