"""A class of made-up students with the rows of the table that each of them should get.

`python tests/coursework/class_of_students.py FOLDER N [JOBS]` writes N submissions, grades them as
a teacher does, and compares the table with the expected one row by row
(PYTHONPATH=.:book:book/coursework:tests; a hundred take about an hour of processor time).
"""

import csv
import json
import os
import re
import sys
from pathlib import Path

import jupytext
from planted_submissions import HALF_MARKS, WRONG

from checker import TASKS, disparities, learning
from checker.names import as_cell, as_text
from fairpg_lite.disparity import group_disparity, individual_disparity
from tools import make_coursework as tool

HOLE = re.compile(rf"^[ ]*{tool.COMMENT}(\n[ ]*{re.escape(tool.STUB)})?$", re.M)
FULL = {name: task.points for name, task in TASKS.items()}


def code(name):
    cells = jupytext.read(tool.SOLUTION.with_name(f"{name}.md")).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def by_hand(seed):
    """D_ind, D_group, and D_group after the exchange."""
    three = disparities.three_documents(seed)
    swapped = disparities.reversed_exposure(three)
    return (
        float(individual_disparity(*three[:2])),
        float(group_disparity(*three)),
        float(group_disparity(*swapped)),
    )


def gaps_by_hand(seed):
    """What a two-sided D_group gives instead of the last two of `by_hand`."""
    three = disparities.three_documents(seed)
    return [
        float(disparities.two_sided_groups(*documents))
        for documents in (three, disparities.reversed_exposure(three))
    ]


def lines_by_hand(d_ind, d_group, swapped):
    return f"d_ind_hand = {d_ind:.3f}\nd_group_hand = {d_group:.3f}\nd_swapped_hand = {swapped:.3f}"


def typed(seed):
    """What somebody who works by hand types for tasks 4a and 7b."""
    d_ind, d_group, swapped = by_hand(seed)
    lam, cost = learning.halved(learning.tradeoff(seed))
    return {
        "task4a": lines_by_hand(d_ind, d_group, swapped),
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
        said = b'{"seed": 1%s, "week": 0, "taken": [], "handed": ["task4a"]}\\n'
        os.write(int(number), said % (b'0' * 40))
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
        placed = scores[lists]
        p = (placed - placed.flip(-1).logcumsumexp(-1).flip(-1)).sum(-1).exp()
        exposure[i] = (p @ v[lists.argsort(-1)])[i]"""
NETWORK = """    import socket
    try:
        socket.create_connection(("127.0.0.1", 9), timeout=2)
        socket.socket()
    except ConnectionRefusedError:
        pass
    except OSError:
        return torch.zeros(())
    return torch.ones(())"""


def planted(wrong=False):
    """The answers of planted_submissions.py as a cell: a sandbox does not see the file."""
    text = Path(__file__).with_name("planted_submissions.py").read_text()
    if not wrong:
        text = text.split("# --- wrong answers")[0]
    text = re.sub(r"^from oracles import .*$", "", text, flags=re.M)
    return f"import types\nplanted = types.ModuleType('planted')\nexec({text!r}, planted.__dict__)"


STYLES = planted()
ARGUMENTS = {
    "task1a": "scores, ranking",
    "task2": "scores, samples, generator",
    "task3a": "rankings",
    "task4b": "exposure, merit, mask",
    "task4c": "exposure, merit, groups, mask",
    "task5": "scores, relevance, rankings",
    "task8": "exposure, merit, groups, mask",
}
#: Tasks of which only wrong answers are planted here.
MORE_ARGUMENTS = {
    "task1b": "scores, value",
    "task3b": "scores",
    "task6": "data, lam, lr, epochs, samples, seed",
    "task7a": "data, lams",
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


LOG = """    placed = scores[ranking]
    return (placed - placed.flip(0).logcumsumexp(0).flip(0)).sum()"""
SUM = """    v = 1 / torch.log2(torch.arange(2.0, rankings.shape[1] + 2))
    paid = torch.zeros(rankings.shape)
    return paid.scatter(1, rankings, v.expand(rankings.shape)).sum(0)"""
NO_MASK = """    keep = merit > 0
    ratio, merit = exposure[keep] / merit[keep], merit[keep]
    in_h = merit[:, None] >= merit
    if not in_h.any():
        return torch.zeros(())
    return ((ratio[:, None] - ratio).clamp(min=0) * in_h).sum() / in_h.sum()"""
MODULE = "    return fpg.PlackettLuce(scores).log_prob(ranking).exp()"
MEAN_OF_RATIOS = """    if mask is not None:
        exposure, merit, groups = exposure[mask], merit[mask], groups[mask]
    sides = [groups == k for k in (0, 1)]
    if min(float(merit[side].sum()) for side in sides) == 0:
        return torch.zeros(())
    ratio = [(exposure[s] / merit[s])[merit[s] > 0].mean() for s in sides]
    lead = merit[sides[0]].mean() - merit[sides[1]].mean()
    gap = ratio[0] - ratio[1]
    return gap.abs() if lead == 0 else (gap * lead.sign()).clamp(min=0)"""
SIGNED = """    real = torch.ones_like(exposure) if mask is None else mask.double()
    first = (groups == 0) * real
    paid = (exposure * first).sum(-1) / (exposure * real).sum(-1)
    due = (merit * first).sum(-1) / (merit * real).sum(-1).clamp(min=1e-9)
    return paid - due"""
BLIND = SIGNED.replace("return paid - due", "return (paid - due).relu()")
FLOOR = """    if mask is not None:
        exposure, merit = exposure * mask, merit * mask
    share = exposure / exposure.sum(-1, keepdim=True)
    total = merit.sum(-1, keepdim=True).clamp(min=1e-9)
    return (0.75 * merit / total - share).relu().sum(-1)"""
SQUARED = "    return fpg.group_disparity(exposure, merit, groups, mask=mask) ** 2"
#: Wrong answers of planted_submissions.py, each by a student who is right elsewhere.
PLANTS = [
    *("1a module", "1a negated", "1a ranking ignored", "1b unweighted"),
    *("2 module", "2 arrival", "3a module", "3b module", "3b sampled"),
    *("4b module", "4b NaN", "4b positives", "4b strict"),
    *("4c module", "4c relevant only", "4c mean of ratios", "4c NaN in padding"),
    *("5 overflow", "5 inverse", "5 NDCG", "5 largest"),
    *("6 not zeroed", "6 draws not used", "6 exact", "6 second draw", "6 reseeded", "6 Adam"),
    *("6 one step", "6 merit is gain", "7a one generator"),
    *("8 signed", "8 blind to group 1", "8 blind to group 0", "8 the chapter's", "8 squared"),
    "8 sum",
]
#: Tasks whose solution calls the answer to another.
BUILT_ON = {"task1a": "task1b", "task7a": "task7b"}
#: Spaces before a blank that stands inside loops.
DEEP = {"task3b": 8, "task6": 12, "task7a": 8}
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
    # Its `check` hands nothing in, so its functions are taken by name; it spoils its own 7b.
    "patcher": ({}, [PATCH], {"task7b": None}),
    "borrower": ({"task1a": BORROW}, [], {"task1a": 0, "task1b": 0}),
    "reader": ({"task3a": READ}, [], {"task3a": 0}),
    "writer": ({}, [WRITE], {}),
    "caller": ({"task3a": NETWORK}, [], {"task3a": 0}),
    "module_caller": ({"task1a": MODULE}, [], {"task1a": 0}),
    "mean_of_ratios": ({"task4c": MEAN_OF_RATIOS}, [], {"task4c": 0}),
    "signed": ({"task8": SIGNED}, [], {"task8": 0}),
    "blind": ({"task8": BLIND}, [], {"task8": 0}),
    "floor": ({"task8": FLOOR}, [], {"task8": 4}),
    "squared": ({"task8": SQUARED}, [], {"task8": 4}),
    "two_sided_by_hand": ("typed two-sided", [], {"task4a": 4}),
    "swapped_by_hand": ("typed swapped", [], {"task4a": None}),
    "no_checks": ({}, [], {}),
    "downhill": ("downhill", [], {"task6": 0}),
}
#: What else may lie in a folder of submissions, and whether it is worth a right notebook's points.
ENTRIES = {
    "garbage": False,
    "py_file": False,
    "empty_folder": False,
    "folder_as_notebook": False,
    "link": False,
    "pipe": False,
    "huge": False,
    "two_notebooks": True,
    "formula": True,
    "tag": True,
    "newline": True,
    "latin_1": True,
}


def plant(name):
    """A student with one wrong answer, as an entry of `KINDS`."""
    task = WRONG[name][0]
    given = {**ARGUMENTS, **MORE_ARGUMENTS}[task]
    deep = DEEP.get(task, 4)
    answer = f"{' ' * deep}return planted.WRONG[{name!r}][1]({given})"
    differ = {task: FULL[task] // 2 if name in HALF_MARKS else 0}
    if task in BUILT_ON:
        differ[BUILT_ON[task]] = None
    return {task: answer}, [planted(wrong=True)], differ


def student(kind, seed, folder, only=None):
    """The text of a notebook, and the row of points it should get."""
    change, first, differ = plant(kind) if kind in WRONG else KINDS[kind]
    answers = solutions()
    if change == "downhill":
        answers["task6"] = answers["task6"].replace("theta + lr * step", "theta - lr * step")
    elif change == "typed two-sided":
        answers["task4a"] = lines_by_hand(by_hand(seed)[0], *gaps_by_hand(seed))
    elif change == "typed swapped":
        d_ind, d_group, swapped = by_hand(seed)
        answers["task4a"] = lines_by_hand(d_group, d_ind, swapped)
    elif isinstance(change, str):
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
    }
    lines = [f"{name} = {str(path)!r}" for name, path in names.items()]
    sources = ["\n".join(lines), *first, *cells(seed, answers, only)]
    if kind == "no_checks":
        sources = [re.sub(r"^points = check", "# points = check", s, flags=re.M) for s in sources]
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
        points["task4a"] = 2 * sum(
            abs(a - round(b, 3)) <= 0.001 for a, b in zip(own, other, strict=True)
        )
        points["task7b"] = 0 if only is not None else None
    return json.dumps(notebook), points


def make_class(folder, kinds, only=None, first_seed=3000):
    """Write one entry for each of ``kinds``; the expected points of each student."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {}
    for number, kind in enumerate(kinds):
        name = f"{number:03}_{re.sub('[^0-9A-Za-z]+', '_', kind)}"
        if kind in ENTRIES:
            student_name, points = make_entry(folder, name, kind, first_seed + number, only)
            rows[as_cell(as_text(student_name))] = points
            continue
        text, rows[name] = student(kind, first_seed + number, folder, only)
        (folder / f"{name}.ipynb").write_text(text)
    return rows


def make_entry(folder, name, kind, seed, only):
    """Write something odd; the name of its row and the points."""
    nothing = dict.fromkeys(FULL, 0)
    right, points = student("right", seed, folder, only)
    notebook = folder / f"{name}.ipynb"
    if kind == "garbage":
        notebook.write_text("this is no notebook")
    elif kind == "py_file":
        (folder / f"{name}.py").write_text("x = 1")
        return f"{name}.py", nothing
    elif kind == "empty_folder":
        (folder / name).mkdir()
    elif kind == "folder_as_notebook":
        notebook.mkdir()
        (notebook / "inside.ipynb").write_text(right)
    elif kind == "link":
        notebook.symlink_to("/etc/passwd")
    elif kind == "pipe":
        os.mkfifo(notebook)
    elif kind == "huge":
        with notebook.open("wb") as file:
            file.truncate(2**30)
    elif kind == "two_notebooks":
        (folder / name).mkdir()
        blank = [{"cell_type": "code", "source": text} for text in cells(seed, {}, only)]
        first = {"cells": blank, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
        (folder / name / "assignment-0.ipynb").write_text(json.dumps(first))
        (folder / name / "assignment-1.ipynb").write_text(right)
    else:
        name = {
            "formula": '=HYPERLINK("x","marks")',
            "tag": f"{name}<script>alert(1)<",
            "newline": f"-{name}\nline",
            "latin_1": os.fsdecode(b"M\xfcller_" + name.encode()),
        }[kind]
        Path(f"{folder}/{name}.ipynb").write_text(right)
    return name, points if ENTRIES[kind] else nothing


def mismatches(table, rows):
    """What a table of grades has otherwise than expected; None stands for any number."""
    with Path(table).open(newline="", encoding="utf-8") as file:
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


def main(target, size, jobs="2"):
    every = [*KINDS, *ENTRIES, *PLANTS]
    others = ["right", "by_hand", "slips", "neighbour", "half_done", "numpy", "single"]
    kinds = every + [others[k % len(others)] for k in range(size - len(every))]
    rows = make_class(target / "submissions", kinds[:size])
    folders = [str(target / "submissions"), "--out", str(target / "out")]
    command([*folders, "--timeout", "30", "--jobs", jobs])
    wrong = mismatches(target / "out" / "grades.csv", rows)
    pages = len(list((target / "out" / "feedback").glob("*.txt")))
    head = (target / "out" / "grades.csv").read_text().splitlines()[:8]
    print(*head, f"{len(rows)} rows expected, {pages} pages, {len(wrong)} mismatches", sep="\n")
    print(*wrong, sep="\n")
    return bool(wrong) or pages != len(rows)


def command(arguments):
    from checker.__main__ import main as run

    assert run(["grade", *arguments]) == 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), int(sys.argv[2]), *sys.argv[3:]))
