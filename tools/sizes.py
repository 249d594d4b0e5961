"""How large the module is, beside the limits it has to keep: `python -m tools.sizes`.

Lines are physical lines, blank ones and docstrings included. Which ring a file belongs to stands in
tests/test_import.py, which also checks that the rings import inward only; it is read from there.
"""

from __future__ import annotations

import ast
import fnmatch
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 300
LIMITS = {  # what is counted -> at most so many
    "ring 1, the idea": 2_600,
    "fairpg_lite, lines": 6_000,
    "fairpg_lite, files": 50,
    f"fairpg_lite, files over {LONGEST} lines": 0,
    "module, experiments and checker": 10_500,
}


def rings(root: Path = ROOT) -> dict[int, list[str]]:
    """The names of each ring, as tests/test_import.py lists them."""
    tree = ast.parse((root / "tests" / "test_import.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RINGS":
            return {ring: names.split() for ring, names in ast.literal_eval(node.value).items()}
    raise SystemExit("sizes: tests/test_import.py has no RINGS.")


def lines(folder: Path) -> dict[str, int]:
    """Lines of every Python file below `folder`, by its path from there."""
    return {
        path.relative_to(folder).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(folder.rglob("*.py"))
    }


def count(root: Path = ROOT) -> dict[str, int]:
    """Everything that is counted, in the order in which it is printed."""
    module, names = lines(root / "fairpg_lite"), rings(root)
    by_ring: Counter[int] = Counter()
    for path, size in module.items():
        first = path.split("/")[0].removesuffix(".py")
        own = [r for r, of in names.items() if any(fnmatch.fnmatch(first, name) for name in of)]
        by_ring[own[0] if own else 0] += size
    book = sum(
        sum(lines(root / "book" / d).values()) for d in ("experiments", "coursework/checker")
    )
    total = sum(module.values())
    return {
        "ring 1, the idea": by_ring[1],
        "ring 2, learning with it": by_ring[2],
        "ring 3, around it": by_ring[3],
        "in no ring (__init__.py)": by_ring[0],
        "fairpg_lite, lines": total,
        "fairpg_lite, files": len(module),
        f"fairpg_lite, files over {LONGEST} lines": sum(n > LONGEST for n in module.values()),
        "book/experiments and checker": book,
        "module, experiments and checker": total + book,
        "tests": sum(lines(root / "tests").values()),
        "tools and benchmarks": sum(sum(lines(root / d).values()) for d in ("tools", "benchmarks")),
    }


def main() -> int:
    """Print the table; 1 if a limit is exceeded."""
    found, over = count(), 0
    print(f"{'':<36}{'found':>8}{'limit':>8}")
    for name, number in found.items():
        limit = LIMITS.get(name)
        too_many = limit is not None and number > limit
        over += too_many
        shown = "" if limit is None else f"{limit:,}"
        print(f"{name:<36}{number:>8,}{shown:>8}{'  too many' if too_many else ''}")
    for path, size in lines(ROOT / "fairpg_lite").items():
        if size > LONGEST:
            print(f"  fairpg_lite/{path} has {size} lines")
    print("Within every limit." if not over else f"{over} limits exceeded.")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
