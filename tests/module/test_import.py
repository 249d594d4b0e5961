"""The package imports little; its folders know what they stand around, and never the reverse."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "fairpg_lite"
HEAVY = [
    "matplotlib",
    "scipy",
    "sklearn",
    "lightgbm",
    "joblib",
    "ipywidgets",
    "tqdm",
    "pandas",
    "numba",
    "safetensors",
]

# Each folder may import the files at the top and the folders before it. A folder that is not named
# here may import everything, and only another such folder may import it.
ORDER = ["", "data", "compiled", "training", "models", "sweeps", "auditing", "cli"]
# What starts or assembles the package, so that it knows everything.
DOORS = {"", "__main__"}


def layer(module: str) -> int:
    """The place of a module's folder in `ORDER`."""
    folder = module.partition(".")[0] if is_in_folder(module) else ""
    return ORDER.index(folder) if folder in ORDER else len(ORDER)


def is_in_folder(module: str) -> bool:
    return (ROOT / module.partition(".")[0]).is_dir()


def modules(root: Path) -> dict[str, Path]:
    """Names below the package, with their files; the package itself is the empty name."""
    found = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def arrows(root: Path) -> set[tuple[str, str]]:
    """(who imports, what) of every import statement, those inside functions included."""
    files = modules(root)
    drawn = set()
    for name, path in files.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for target in imported(node, root.name, package, files):
                drawn.add((name, target))
    return {(a, b) for a, b in drawn if a not in ("", b)}


def imported(node: ast.AST, root: str, package: str, files: dict[str, Path]) -> list[str]:
    """The package's modules that an import statement names."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
        return [n.removeprefix(root).lstrip(".") for n in names if n.split(".")[0] == root]
    if not isinstance(node, ast.ImportFrom):
        return []
    if node.level:
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if package else []
        base = ".".join([*above, node.module] if node.module else above)
    elif (node.module or "").split(".")[0] == root:
        base = (node.module or "").removeprefix(root).lstrip(".")
    else:
        return []
    inner = [f"{base}.{alias.name}".lstrip(".") for alias in node.names]
    return [name if name in files else base for name in inner]


def cycle(drawn: set[tuple[str, str]]) -> list[str]:
    """Modules on some circle of arrows, or nothing: what stays when all others are peeled off."""
    left = set(drawn)
    while True:
        sources, targets = {a for a, _ in left}, {b for _, b in left}
        fewer = {(a, b) for a, b in left if b in sources and a in targets}
        if fewer == left:
            return sorted(sources)
        left = fewer


def test_every_arrow_points_inward():
    outward = {
        f"{importer} imports {imported}"
        for importer, imported in arrows(ROOT)
        if importer not in DOORS and layer(imported) > layer(importer)
    }
    assert outward == set()


def test_no_module_imports_itself_by_a_detour():
    assert cycle(arrows(ROOT)) == []


def test_the_graph_sees_lazy_and_relative_imports(tmp_path):
    root = tmp_path / "fairpg_lite"
    (root / "data").mkdir(parents=True)
    files = {
        "__init__.py": "from fairpg_lite.train import fit",
        "policy.py": "def f():\n  from fairpg_lite import train\n  import fairpg_lite.data.sets",
        "train.py": "from . import policy\nfrom fairpg_lite import __version__",
        "data/__init__.py": "from .sets import x",
        "data/sets.py": "import torch\nfrom .. import policy\nfrom fairpg_lite.policy import f",
    }
    for name, text in files.items():
        (root / name).write_text(text)
    drawn = arrows(root)
    assert drawn == {
        ("policy", "train"),
        ("policy", "data.sets"),
        ("train", "policy"),
        ("train", ""),
        ("data", "data.sets"),
        ("data.sets", "policy"),
    }
    assert cycle(drawn) == ["data.sets", "policy", "train"]
    assert cycle({("a", "b"), ("b", "c"), ("a", "c")}) == []


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout


def test_import_loads_no_optional_dependency():
    loaded = run("import sys, fairpg_lite; print(*sys.modules)").split()
    assert "torch" in loaded
    # torch itself takes tqdm where it finds it.
    assert [name for name in HEAVY if name in loaded and name != "tqdm"] == []


def test_import_works_where_only_torch_and_numpy_are_installed():
    """Every other top-level package of the environment is made impossible to import."""
    code = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {HEAVY!r}:
            raise ImportError(name + ' is not installed')
sys.meta_path.insert(0, Refuse())
import fairpg_lite
from fairpg_lite import *
try:
    fairpg_lite.FairRanker
except ImportError:
    print("refused")
print(*vars(fairpg_lite))
"""
    assert {"refused", "PlackettLuce", "fit", "evaluate", "tradeoff"} <= set(run(code).split())


def test_the_estimator_brings_scikit_learn_when_asked_for():
    code = """
import sys, fairpg_lite
assert "FairRanker" in dir(fairpg_lite) and "sklearn" not in sys.modules
fairpg_lite.FairRanker
print("sklearn" in sys.modules)
"""
    assert run(code).split() == ["True"]


def test_own_modules_are_few_beside_torch():
    """What the import adds over torch is our own small files and nothing else of weight."""
    code = (
        "import sys, torch; before = set(sys.modules); import fairpg_lite; "
        "print(*sorted(set(sys.modules) - before))"
    )
    added = run(code).split()
    foreign = [n for n in added if not n.startswith(("fairpg_lite", "numpy", "torch"))]
    assert len(foreign) < 40, foreign
