"""A class of made-up students with the rows of the table that each of them should get.

`python tests/class_of_students.py FOLDER N` writes N notebooks, grades them as a teacher does, and
compares the table with the expected one row by row (PYTHONPATH=.:book:book/coursework).
"""

import csv
import json
import re
import sys
from pathlib import Path

import jupytext

from checker import TASKS, disparities, learning
from fairpg_lite.disparity import group_disparity, individual_disparity
from tools import make_coursework as tool

HOLE = re.compile(rf"^[ ]*{tool.COMMENT}(\n[ ]*{re.escape(tool.STUB)})?$", re.M)
FULL = {name: task.points for name, task in TASKS.items()}


def code(name):
    cells = jupytext.read(tool.SOLUTION.with_name(f"{name}.md")).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def by_hand(seed):
    three = disparities.three_documents(seed)
    return float(individual_disparity(*three[:2])), float(group_disparity(*three))


def typed(seed):
    """What somebody who works by hand types for tasks 4a and 7b."""
    d_ind, d_group = by_hand(seed)
    lam, cost = learning.halved(learning.tradeoff(seed))
    return {
        "task4a": f"d_ind_hand = {d_ind:.3f}\nd_group_hand = {d_group:.3f}",
        "task7b": f"lam_half = {lam}\nndcg_cost = {cost:.4f}",
    }


def cells(seed, answers, only=None):
    """The assignment's cells with some blanks filled; ``only`` keeps the cells of some tasks."""
    order = iter(TASKS)
    made = [
        HOLE.sub(lambda hole: answers.get(next(order), hole[0]), source).replace(
            "SEED = 2026", f"SEED = {seed}"
        )
        for source in code("assignment")
    ]
    keep = ["SEED =", "three_documents()", *(f'check("{task}"' for task in only or [])]
    return made if only is None else [c for c in made if any(word in c for word in keep)]


def solutions():
    regions = [m[2] for source in code("solution") for m in tool.REGION.finditer(source)]
    return dict(zip(TASKS, (region.rstrip("\n") for region in regions), strict=True))


STACK = """    import sys
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            if hasattr(value, "expected"):
                return value.expected
        frame = frame.f_back
    return torch.zeros(())"""
FORGE = """    import glob, json, os
    for number in os.listdir("/proc/self/fd"):
        try:
            os.write(int(number), b'{"points": 8, "share": 1.0}\\n')
        except OSError:
            pass
    return torch.zeros(())"""
PATCH = """import checker
import torch
checker.check = lambda *x: 100
checker.score = lambda: 100
try:
    checker.TASKS["task1a"].examine = None
except AttributeError:
    pass
torch.allclose = torch.equal = lambda *x, **y: True
torch.Tensor.__le__ = lambda *x: torch.tensor(True)
"""
BORROW = """    import checker.policies
    return checker.policies.probability(scores, ranking)"""
READ = """    import pathlib, glob
    found = ""
    for path in glob.glob(SUBMISSIONS + "/*") + [SOLUTION]:
        found += pathlib.Path(path).read_text()
    return torch.tensor(float(len(found)))"""
WRITE = """import os
for path in (GRADES, SUBMISSIONS + "/ada.ipynb"):
    try:
        with open(path, "w") as file:
            file.write("student,total\\n")
    except OSError:
        pass
try:
    os.kill(os.getppid(), 9)
except OSError:
    pass
"""
DRIP = """    import os, time
    while True:
        for number in os.listdir("/proc/self/fd"):
            try:
                os.write(int(number), b" ")
            except OSError:
                pass
        time.sleep(0.1)"""
NEST = """    import os
    for number in os.listdir("/proc/self/fd"):
        try:
            os.write(int(number), b"[" * 10**5 + b"\\n")
        except OSError:
            pass
    return torch.zeros(())"""
SEED = """import os
for number in os.listdir("/proc/self/fd"):
    try:
        os.write(int(number), b'{"seed": 1%s, "handed": ["task4a"]}\\n' % (b'0' * 40))
    except OSError:
        pass
"""
LONG_SEED = """import checker
try:
    checker.begin(10**30)
except Exception:
    pass
checker.three_documents()
"""
CLOCK = "import time\ntime.process_time = time.perf_counter = time.monotonic = lambda: 0.0"
ENUMERATE = """        lists = torch.tensor(list(permutations(range(n))))
        p = fpg.PlackettLuce(scores).log_prob(lists).exp()
        exposure[i] = (p @ fpg.ranking_exposure(lists, v))[i]"""
NETWORK = """    import socket
    try:
        socket.create_connection(("127.0.0.1", 9), timeout=2)
        socket.socket()
    except ConnectionRefusedError:
        pass
    except OSError:
        return torch.zeros(())
    return torch.ones(())"""
STYLES = "import sys\nsys.path.insert(0, TESTS)\nimport planted_submissions as planted"
ARGUMENTS = {
    "task1a": "scores, ranking",
    "task2": "scores, samples, generator",
    "task3a": "rankings",
    "task4b": "exposure, merit, mask",
    "task4c": "exposure, merit, groups, mask",
    "task5": "scores, relevance, rankings",
    "task8": "exposure, merit, groups, mask",
}
NUMPY = ["probability", "sampler", "payments", "d_ind", "d_group"]
NUMPY = [*(f"numpy_{name}" for name in NUMPY), "autograd_gradient", "squared_shares"]
SINGLE = ["probability", "sampler", "sampled", "d_ind", "d_group", "dcg_gradient"]


def styled(functions, wrap="{}"):
    """Answers that call these functions of tests/planted_submissions.py, task by task."""
    return {
        task: f"    return {wrap.format(f'planted.{function}')}({given})"
        for (task, given), function in zip(ARGUMENTS.items(), functions, strict=False)
    }


LOG = "    return fpg.PlackettLuce(scores).log_prob(ranking)"
SUM = "    return fpg.ranking_exposure(rankings, fpg.position_bias(rankings.shape[1])).sum(0)"
NO_MASK = "    return fpg.individual_disparity(exposure, merit)"
#: name: (what replaces answers, cells to put first, points that differ from full)
KINDS = {
    "right": ({}, [], {}),
    "numpy": (styled(NUMPY), [STYLES], {}),
    "single": (styled(SINGLE, "planted.in_single_precision({})"), [STYLES], {}),
    "by_hand": ("typed", [], {}),
    "neighbour": ("typed for another seed", [], {"task4a": None, "task7b": None}),
    "slips": (
        {"task1a": LOG, "task3a": SUM, "task4b": NO_MASK},
        [],
        {"task1a": 0, "task1b": 0, "task3a": 0, "task4b": 4},
    ),
    "half_done": (
        dict.fromkeys(["task5", "task6", "task7a", "task7b", "task8"]),
        [],
        dict.fromkeys(["task5", "task6", "task7a", "task7b", "task8"], 0),
    ),
    "hanging_cell": ({}, ["while True:\n    pass"], {}),
    "hanging_function": ({"task3a": "    while True:\n        pass"}, [], {"task3a": 0}),
    "hanging_in_c": ({"task3a": "    return 7**(10**9) % 10"}, [], {"task3a": 0}),
    "exits": ({"task3a": "    raise SystemExit(0)"}, ["import sys\nsys.exit(1)"], {"task3a": 0}),
    "dies": ({"task3a": "    import os\n    os._exit(0)"}, [], {"task3a": 0}),
    "greedy": ({"task3a": "    return [0.0] * 10**11"}, [], {"task3a": 0}),
    "stack": ({"task3a": STACK}, [], {"task3a": 0}),
    "forger": ({"task3a": FORGE}, [], {"task3a": 0}),
    "nester": ({"task3a": NEST}, [], {"task3a": 0}),
    "other_seed": ({}, [SEED], dict.fromkeys(FULL, 0)),  # it ends the notebook's own messages
    "long_seed": ({}, [LONG_SEED], {}),  # no generator takes it
    "clock": ({"task3b": ENUMERATE}, [CLOCK], {"task3b": 5}),
    "patcher": ({}, [PATCH], dict.fromkeys(FULL, 0)),  # its `check` hands nothing in
    "borrower": ({"task1a": BORROW}, [], {"task1a": 0, "task1b": 0}),
    "reader": ({"task3a": READ}, [], {"task3a": 0}),
    "writer": ({}, [WRITE], {}),
    "caller": ({"task3a": NETWORK}, [], {"task3a": 0}),
}


def student(kind, seed, folder, only=None):
    """The text of a notebook, and the row of points it should get."""
    change, first, differ = KINDS[kind]
    answers = solutions()
    if isinstance(change, str):
        numbers = typed(seed if change == "typed" else seed + 1)
        answers |= numbers
    else:
        answers |= {task: text for task, text in change.items() if text is not None}
        for task in [task for task, text in change.items() if text is None]:
            del answers[task]
    names = {
        "SUBMISSIONS": folder,
        "GRADES": folder.parent / "grades.csv",
        "SOLUTION": tool.SOLUTION,
        "TESTS": Path(__file__).resolve().parents[1],
    }
    lines = [f"{name} = {str(path)!r}" for name, path in names.items()]
    sources = ["\n".join(lines), *first, *cells(seed, answers, only)]
    made = [
        {
            "cell_type": "code",
            "source": text,
            "metadata": {},
            "outputs": [],
            "execution_count": None,
        }
        for text in sources
    ]
    notebook = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    points = {task: n if only is None or task in only else 0 for task, n in FULL.items()}
    points |= {task: n for task, n in differ.items() if only is None or task in only}
    if kind == "neighbour":  # half the points for each number that two seeds happen to share
        own, other = by_hand(seed), by_hand(seed + 1)
        points["task4a"] = 3 * sum(
            abs(a - round(b, 3)) <= 0.001 for a, b in zip(own, other, strict=True)
        )
        points["task7b"] = 0 if only is not None else None
    return json.dumps(notebook), points


def make_class(folder, kinds, only=None, first_seed=3000):
    """Write one notebook per entry of ``kinds``; the expected points of each student."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {}
    for number, kind in enumerate(kinds):
        name = f"{number:03}_{kind}"
        if kind == "garbage":
            (folder / f"{name}.ipynb").write_text("this is no notebook")
            rows[name] = dict.fromkeys(FULL, 0)
            continue
        text, rows[name] = student(kind, first_seed + number, folder, only)
        (folder / f"{name}.ipynb").write_text(text)
    return rows


def mismatches(table, rows):
    """What a table of grades has otherwise than expected; None stands for any number."""
    with Path(table).open(newline="") as file:
        found = {row["student"]: row for row in csv.DictReader(file)}
    wrong = [f"{name}: no row" for name in rows if name not in found]
    wrong += [f"{name}: nobody of that name" for name in found if name not in rows]
    for name in found.keys() & rows.keys():
        row = found[name]
        for task, points in rows[name].items():
            if points is not None and int(row[task]) != points:
                wrong.append(f"{name} {task}: {row[task]}, expected {points}")
        if sum(int(row[task]) for task in FULL) != int(row["total"]):
            wrong.append(f"{name}: total {row['total']}")
    return wrong


def main(target, size):
    every = [*KINDS, "garbage"]
    others = ["right", "by_hand", "slips", "neighbour", "half_done", "numpy", "single"]
    kinds = every + [others[k % len(others)] for k in range(size - len(every))]
    rows = make_class(target / "submissions", kinds[:size])
    paths = ["--out", str(target / "grades.csv"), "--feedback", str(target / "feedback")]
    command([str(target / "submissions"), *paths, "--timeout", "30", "--jobs", "2"])
    wrong = mismatches(target / "grades.csv", rows)
    pages = len(list((target / "feedback").glob("*.txt")))
    head = (target / "grades.csv").read_text().splitlines()[:8]
    print(*head, f"{len(rows)} rows expected, {pages} pages, {len(wrong)} mismatches", sep="\n")
    print(*wrong, sep="\n")
    return bool(wrong) or pages != len(rows)


def command(arguments):
    from checker.__main__ import main as run

    assert run(["grade", *arguments]) == 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), int(sys.argv[2])))
