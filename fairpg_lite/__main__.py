"""`python -m fairpg_lite` is `fairpg-lite`."""

import sys

from fairpg_lite.cli import main

if __name__ == "__main__":
    sys.exit(main())
