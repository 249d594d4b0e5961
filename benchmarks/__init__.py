"""Speed and accuracy, measured as ratios in one run. `make bench` runs them all."""

import os
import sys
from pathlib import Path

# The stand-in for Yahoo's data lives in the book; processes started from here need it as well.
BOOK = str(Path(__file__).resolve().parent.parent / "book")
sys.path.append(BOOK)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), BOOK]))
