"""How much longer is ``import fairpg_lite`` than ``import torch``, in a fresh interpreter?

python -m benchmarks.importing
"""

import subprocess
import sys

from benchmarks import _timing

COMMAND = "python -m benchmarks.importing"


def main() -> None:
    """Print the ratio of the medians over interleaved interpreters."""

    def start(statement: str) -> None:
        subprocess.run([sys.executable, "-c", statement], check=True)

    spent = _timing.interleaved(
        {"torch": lambda: start("import torch"), "ours": lambda: start("import fairpg_lite")}, 11
    )
    ratio = spent["ours"] / spent["torch"]
    print(f"import fairpg_lite takes {ratio:.3f} times as long as import torch")
    _timing.store("importing", COMMAND, ratio=ratio, seconds=spent)


if __name__ == "__main__":
    main()
