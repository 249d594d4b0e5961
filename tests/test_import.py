"""Importing the package needs torch and numpy only, and hardly more time than torch itself."""

import subprocess
import sys

HEAVY = ["matplotlib", "scipy", "sklearn", "lightgbm", "joblib", "ipywidgets", "tqdm", "pandas"]


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
print(len(fairpg_lite.__all__), all(hasattr(fairpg_lite, n) for n in fairpg_lite.__all__))
"""
    count, complete = run(code).split()
    assert int(count) > 15
    assert complete == "True"


def test_own_modules_are_few_beside_torch():
    """What the import adds over torch is our own small files and nothing else of weight."""
    code = (
        "import sys, torch; before = set(sys.modules); import fairpg_lite; "
        "print(*sorted(set(sys.modules) - before))"
    )
    added = run(code).split()
    foreign = [n for n in added if not n.startswith(("fairpg_lite", "numpy", "torch"))]
    assert len(foreign) < 40, foreign
