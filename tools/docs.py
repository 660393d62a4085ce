"""Builds the documentation site into ``site/VERSION`` and checks it: ``make docs``."""

import sys

from docsite.build import main

if __name__ == "__main__":
    sys.exit(main())
