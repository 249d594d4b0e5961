"""Chapters and tests as on other machines: `make portable`, or `python -m tools.portable`.

The same sum comes out in another last digit on another processor, because the libraries add in
another order. Most libraries can be told to behave as on an older one. A profile is a set of such
orders; under each the chapters are compared with their stored outputs (nbval) and the module's
tests are run. A printed number that changes is one that the computation does not determine: print
fewer digits, or compute it better (CONTRIBUTING.md).

    python -m tools.portable --profiles avx2 old --chapters 04 11
    python -m tools.portable --list
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tools.run_chapters import ROOT, chapters, select

LEVELS = ("DEFAULT", "AVX2", "AVX512")  # what PyTorch calls them, each with all before it
SWITCHES = (
    "ATEN_CPU_CAPABILITY",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_CBWR",
    "OPENBLAS_CORETYPE",
    "NPY_DISABLE_CPU_FEATURES",
)
QUICK = "not (slow or browser or build or chapter)"


@dataclass(frozen=True)
class Profile:
    """One machine to imitate: what it needs, its threads, and what the libraries are told."""

    threads: int = 1
    needs: str = "DEFAULT"
    numpy_without: tuple[str, ...] = ()  # the beginnings of names of NumPy's features
    switches: dict[str, str] = field(default_factory=dict)


WIDE = ("AVX512", "X86_V4")
OLD = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "OPENBLAS_CORETYPE": "Prescott",
}
AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}
AVX512 = {
    "ATEN_CPU_CAPABILITY": "avx512",
    "MKL_ENABLE_INSTRUCTIONS": "AVX512",
    "OPENBLAS_CORETYPE": "SkylakeX",
}
PROFILES = {
    "native": Profile(),
    "native, 2 threads": Profile(threads=2),
    "native, 4 threads": Profile(threads=4),
    "old": Profile(numpy_without=("",), switches=OLD),
    "old, 4 threads": Profile(threads=4, numpy_without=("",), switches=OLD),
    "avx2": Profile(needs="AVX2", numpy_without=WIDE, switches=AVX2),
    "avx2, 2 threads": Profile(threads=2, needs="AVX2", numpy_without=WIDE, switches=AVX2),
    "avx512": Profile(needs="AVX512", switches=AVX512),
    "compatible, 2 threads": Profile(threads=2, switches={"MKL_CBWR": "COMPATIBLE"}),
}


@dataclass
class Outcome:
    """What a run under one profile found; `failed` names each cell and test."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)


def plain_environment() -> dict[str, str]:
    """This environment without anybody's switches."""
    return {name: value for name, value in os.environ.items() if name not in SWITCHES}


def machine() -> tuple[str, list[str]]:
    """What this processor can do: PyTorch's word for it, and the features that NumPy found."""
    code = (
        "import numpy, torch; print(torch.backends.cpu.get_cpu_capability()); "
        "print(*numpy.show_config(mode='dicts')['SIMD Extensions'].get('found', []))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    level, features = done.stdout.splitlines()[:2]
    return level, features.split()


def can_run(profile: Profile, level: str) -> bool:
    """Whether a processor of this level can imitate the profile's."""
    if profile.needs == "DEFAULT":
        return True
    return level in LEVELS and LEVELS.index(level) >= LEVELS.index(profile.needs)


def environment(profile: Profile, features: Iterable[str]) -> dict[str, str]:
    """The variables of a run under the profile; conftest.py hands the threads on to the kernels."""
    settings = {**profile.switches, "FAIRPG_TEST_THREADS": str(profile.threads)}
    settings["OMP_WAIT_POLICY"] = "PASSIVE"  # more threads than cores would wait in endless loops
    without = [f for f in features if any(f.startswith(w) for w in profile.numpy_without)]
    if without:  # NumPy refuses names that this processor does not have
        settings["NPY_DISABLE_CPU_FEATURES"] = " ".join(without)
    return {**plain_environment(), **settings}


def read_report(path: Path) -> Outcome:
    """Passed and failed from pytest's XML; a skipped test is neither."""
    outcome = Outcome()
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            where = (case.get("classname") or "").removeprefix("book.").removesuffix(".ipynb")
            outcome.failed.append(f"{where}: {case.get('name')}")
        elif "skipped" not in kinds:
            outcome.passed += 1
    return outcome


def run(arguments: list[str], env: dict[str, str]) -> Outcome:
    """pytest with these arguments; its dots are the progress."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rN", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, f"--junitxml={report}", *arguments], cwd=ROOT, env=env, check=False
        )
        if not report.exists():
            return Outcome(failed=[f"pytest itself: it ended with {done.returncode}"])
        return read_report(report)


def table(rows: dict[str, tuple[Outcome, Outcome]]) -> str:
    """Profile by what passed and failed, and below it every cell and test that did."""
    lines = [f"{'profile':<24}{'cells: passed':>14}{'failed':>8}{'tests: passed':>15}{'failed':>8}"]
    for name, (cells, tests) in rows.items():
        numbers = f"{cells.passed:>14,}{len(cells.failed):>8}{tests.passed:>15,}"
        lines.append(f"{name:<24}{numbers}{len(tests.failed):>8}")
    for name, both in rows.items():
        lines += [f"  under {name}: {failed}" for outcome in both for failed in outcome.failed]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Chapters and tests as on other machines.")
    parser.add_argument("--list", action="store_true", help="print the profiles and end")
    parser.add_argument("--profiles", nargs="+", metavar="NAME", help="only these, or first words")
    parser.add_argument("--chapters", nargs="*", metavar="NN", help="only these; none: no chapter")
    parser.add_argument("--tests", nargs="*", metavar="FILE", help="only these; none: no test")
    parser.add_argument("--jobs", type=int, default=2, help="processes of pytest (2)")
    options = parser.parse_args(arguments)
    level, features = machine()
    if options.list:
        for name, profile in PROFILES.items():
            words = " ".join(f"{k}={v}" for k, v in profile.switches.items())
            print(f"{name:<24}{'' if can_run(profile, level) else '(not here) '}{words}")
        return 0
    wanted = options.profiles or list(PROFILES)
    chosen = [name for name in PROFILES if name in wanted or name.split(",")[0] in wanted]
    unknown = [w for w in wanted if not any(w in (n, n.split(",")[0]) for n in PROFILES)]
    if unknown:
        raise SystemExit(f"portable: no profile {unknown[0]!r}; there are: {'; '.join(PROFILES)}.")
    known = chapters()
    texts = known if options.chapters is None else select(options.chapters, known)
    notebooks = [str(text.with_suffix(".ipynb").relative_to(ROOT)) for text in texts]
    tests = ["tests", "fairpg_lite"] if options.tests is None else options.tests
    jobs = ["-n", str(options.jobs), "--dist", "loadfile"] if options.jobs > 1 else []
    print(f"This processor: {level}; NumPy found {' '.join(features) or 'nothing more'}.")
    unable = [name for name in chosen if not can_run(PROFILES[name], level)]
    for name in unable:
        print(f"Left out: {name} needs {PROFILES[name].needs}, which this processor has not.")
    rows: dict[str, tuple[Outcome, Outcome]] = {}
    chosen = [name for name in chosen if name not in unable]
    for number, name in enumerate(chosen, 1):
        start = time.monotonic()
        print(f"\n[{number} of {len(chosen)}] {name}", flush=True)
        env = environment(PROFILES[name], features)
        cells = run([*jobs, *notebooks], env) if notebooks else Outcome()
        module = run([*jobs, "-m", QUICK, *tests], env) if tests else Outcome()
        rows[name] = (cells, module)
        print(f"{name}: {time.monotonic() - start:.0f} s\n{table({name: rows[name]})}", flush=True)
    print(f"\n{table(rows)}")
    failed = sum(len(outcome.failed) for both in rows.values() for outcome in both)
    left = f" {len(unable)} profiles could not be tried here." if unable else ""
    print(("Nothing changes under any profile." if not failed else f"{failed} changes.") + left)
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
