"""Optional packages, the progress bar, and what importing the data package brings in."""

import builtins
import subprocess
import sys

import pytest

from fairpg_lite._extras import progress_bar, require


def test_require_names_the_extra_and_hides_nothing_else(tmp_path, monkeypatch):
    with pytest.raises(ImportError, match=r'pip install "fairpg-lite\[plots\]"'):
        require("surely_absent.sub", "plots")
    (tmp_path / "broken_module.py").write_text("import surely_absent\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_absent") as error:
        require("broken_module", "plots")
    assert "pip install" not in str(error.value)


def test_progress_with_tqdm_without_it_and_disabled(capsys, monkeypatch):
    with progress_bar("reading", 10, enabled=False) as bar:
        bar.update(10)
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""
    with progress_bar("reading", 10) as bar:
        bar.update(10)
    captured = capsys.readouterr()
    assert "reading" in captured.err
    assert captured.out == ""

    real_import = builtins.__import__

    def no_tqdm(name, *args, **kwargs):
        if name.startswith("tqdm"):
            raise ModuleNotFoundError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_tqdm)
    with progress_bar("reading", 10, "B") as bar:
        bar.update(4)
        bar.set_postfix(U=1.0)
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""


def test_importing_the_data_package_imports_no_extra():
    code = (
        "import sys, torch, numpy; before = set(sys.modules);"  # torch itself may import tqdm
        "import fairpg_lite.data as d; d.synthetic(); d.german_credit(); d.mslr_sample();"
        "extras = {'sklearn', 'scipy', 'lightgbm', 'joblib', 'tqdm', 'matplotlib', 'pandas'};"
        "bad = extras & (set(sys.modules) - before); sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
