"""`make bench`: every benchmark in turn, or those named on the command line."""

import importlib
import sys

NAMES = [
    "importing",
    "first_result",
    "training",
    "threads",
    "scaling",
    "gradients",
    "long_lists",
    "memory",
    "sample_or_exact",
    "sweep",
    "cluster",
    "catalogue",
    "letor",
    "lp",
    "rivals.errors",
    "rivals.training",
    "rivals.prices",
]


def main(names: list[str]) -> None:
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        sys.exit(f"benchmarks: there is no {', '.join(unknown)}; choose from {', '.join(NAMES)}.")
    for name in names or NAMES:
        print(f"\n== {name} ==", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
