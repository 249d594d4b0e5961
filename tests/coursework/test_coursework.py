"""The coursework: the solution earns all points, each slip its sentence, a blank no crash."""

import ast
import itertools
import os
import re
import subprocess
import sys

import jupytext
import nbformat
import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from nbclient import NotebookClient
from planted_submissions import (
    HALF,
    HALF_MARKS,
    RIGHT,
    STYLES,
    WRONG,
    d_group,
    d_ind,
    mean_of_ratios,
    payments,
    probability,
    sampled,
    sweep,
)

import checker as coursework
from checker import TASKS, begin, check, disparities, examine, learning, policies, score
from tools import make_coursework as tool
from tools.check_chapters import ROOT, UNPUBLISHED, files_in, problems

pytestmark = pytest.mark.slow

BOOK = ROOT / "book" / "coursework"
SEEDS = (0, 7)


@pytest.fixture(autouse=True)
def in_double_precision():
    """As the notebook asks for; and every test starts without points."""
    torch.set_default_dtype(torch.float64)
    begin(seed=0)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", STYLES)
def test_no_style_of_a_right_answer_is_refused(name):
    task, answer = STYLES[name]
    begin(seed=11)
    assert check(task, answer) == TASKS[task].points


@pytest.mark.parametrize("task", RIGHT)
def test_another_right_answer_gets_all_points(task):
    for seed in SEEDS:
        begin(seed)
        assert check(task, RIGHT[task]) == TASKS[task].points


def test_points_sum_to_a_hundred():
    assert sum(task.points for task in TASKS.values()) == 100


@pytest.mark.parametrize("name", TASKS)
def test_the_chapter_to_read_exists(name):
    """By its subject, not by a heading's words, which change more often."""
    (text,) = (ROOT / "book").glob(f"{TASKS[name].chapter:02}_*.md")
    assert text.exists()


# --- wrong answers ------------------------------------------------------------------------------


def caught(task, answer, words, capsys):
    """The answer loses points, and the message says why and where to look."""
    capsys.readouterr()
    points = check(task, answer)
    printed = " ".join(capsys.readouterr().out.split())
    assert points < TASKS[task].points, "full marks for a wrong answer"
    assert words in printed
    assert f"To read: chapter {TASKS[task].chapter}, on" in printed
    return points, printed


#: Tasks whose examination takes a quarter of a second or more, with the seeds to try. Tasks 6 and
#: 7a ask one of a few runs, which other tests go through.
LONG = {"task2": range(3), "task3b": range(4), "task6": range(2), "task7a": range(2)}
#: Slips of the sampler that show by chance only, and get more seeds.
BY_CHANCE = {"2 duplicated", "2 antithetic", "2 three places", "2 warm"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", WRONG)
def test_every_seed_gives_a_wrong_answer_its_mark_and_its_message(name, capsys):
    """What the notebook says is what the grade says, though they use different seeds.

    With some of the seeds an early checker gave full marks for a wrong answer.
    """
    task, answer, words = WRONG[name]
    expected = TASKS[task].points // 2 if name in HALF_MARKS else 0
    seeds = range(9) if name in BY_CHANCE else LONG.get(task, [*range(20), 29, 57])
    rules = ("8", "2")  # rules on the whole, often without one input that shows it
    whole = ("enumeration", "at once", "fit", "module", "sampled", "draws not used")
    for seed in seeds:
        begin(seed)
        points, printed = caught(task, answer, words, capsys)
        assert points == expected, seed
        if not name.startswith(rules) and not name.endswith(whole):
            assert "Shown by" in printed


@pytest.mark.parametrize("name", ["1a overflow", "1a underflow"])
def test_numerical_faults_are_sent_to_the_section_on_numerics(name, capsys):
    _, printed = caught(*WRONG[name], capsys)
    assert "chapter 3, on what a computer gets wrong with exp" in printed
    assert HALF in printed
    assert ("underflow" in printed) == ("overflow" not in printed)


@pytest.mark.parametrize("name", WRONG)
def test_a_checker_that_passes_everything_turns_the_test_red(name, capsys, monkeypatch):
    task, answer, words = WRONG[name]
    lenient = TASKS[task]._replace(examine=lambda answers, g: None)
    monkeypatch.setitem(TASKS, task, lenient)
    with pytest.raises(AssertionError, match="full marks"):
        caught(task, answer, words, capsys)


@pytest.mark.parametrize(
    "name", ["1a log", "3a indices", "4b two-sided", "4c G factor", "5 summed"]
)
def test_a_comparison_that_is_always_true_turns_the_test_red(name, capsys, monkeypatch):
    monkeypatch.setattr(examine, "same", lambda *arguments: True)
    with pytest.raises(AssertionError, match="full marks"):
        caught(*WRONG[name], capsys)


def module_slips(*slow):
    """Every slip that the checker knows, with its sentence; without those of slow tasks."""
    asked = {name: task.examine for name, task in TASKS.items() if name not in slow}
    asked |= {"task1b": policies.EXPECTATION, "task3b": policies.EXACT}
    asked |= {"task6": learning.LOOP} if "task6" not in slow else {}
    questions = {name: q for name, q in asked.items() if isinstance(q, examine.Question)}
    return [(name, slip, q.slips[slip]) for name, q in questions.items() for slip in q.slips]


def unseen(answer):
    """The checker's own slips call the module, which a student's answer may not."""

    def answered(*inputs):
        watching = sys.getprofile()
        sys.setprofile(None)
        try:
            return answer(*inputs)
        finally:
            sys.setprofile(watching)

    return answered


@pytest.mark.parametrize(("task", "name", "answer"), module_slips("task6", "task7a"))
def test_no_slip_is_taken_for_another(task, name, answer, capsys):
    for seed in SEEDS:
        begin(seed)
        caught(task, unseen(answer), " ".join(TASKS[task].says[name].split()), capsys)


def test_every_sentence_of_the_table_is_said_somewhere():
    """A name that the code does not know is a sentence that nobody reads, or the reverse."""
    code = "".join(path.read_text() for path in (BOOK / "checker").glob("*.py"))
    slips = {(task, name) for task, name, _ in module_slips()}
    said = {(task, name) for task in TASKS for name in TASKS[task].says}
    assert slips <= said
    assert not [(task, name) for task, name in said - slips if f'"{name}"' not in code]


@given(
    task=st.sampled_from(["task1a", "task3a", "task3b", "task4b", "task4c", "task5"]),
    scale=st.floats(-2, 2).filter(lambda x: abs(x) > 1e-3),
    kind=st.sampled_from(["added", "multiplied", "noise", "constant"]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40)
def test_no_random_wrong_function_gets_full_marks(task, scale, kind, seed):
    begin(seed)
    g = torch.Generator().manual_seed(seed)

    def wrong(*inputs):
        right = RIGHT[task](*inputs)
        return {
            "added": right + scale,
            "multiplied": right * (1 + scale),
            "noise": right + scale * torch.randn(right.shape, generator=g),
            "constant": torch.full(right.shape, scale),
        }[kind]

    assert check(task, wrong) < TASKS[task].points


def test_the_chapter_s_own_disparity_is_a_measure_but_nobody_s_own(capsys):
    """It keeps the rules of task 8 except that it is copied, and the task says that it would be."""
    text = (ROOT / "book" / "07_fair_pg_rank.md").read_text()
    (source,) = re.findall(r"^(def below_floor\(.*?)^```$", text, re.M | re.S)
    names = {}
    exec(source, names)
    assert check("task8", names["below_floor"]) == 4
    assert "chapter 7's `below_floor` up to a factor" in " ".join(capsys.readouterr().out.split())
    assert "`below_floor`" in (BOOK / "assignment.md").read_text()


def test_a_demonstration_earns_nothing(capsys):
    coursework.demonstrate("task1a", probability)
    assert "8 of 8 points" in capsys.readouterr().out
    assert score() == 0


def test_a_week_s_score_is_out_of_its_own_points(capsys):
    begin(0, week=1)
    check("task1a", probability)
    capsys.readouterr()
    assert score() == 8
    out = capsys.readouterr().out
    assert re.search(r"total +8 of +22", out)
    assert "written" not in out
    with pytest.raises(ValueError, match="no week 5"):
        begin(0, week=5)


# --- answers that are none ------------------------------------------------------------------------


def blank(*inputs):
    raise NotImplementedError("not answered yet")


def bare_blank(*inputs):
    raise NotImplementedError


@pytest.mark.parametrize("task", [name for name in TASKS if TASKS[name].answers == 1])
@pytest.mark.parametrize("answer", [blank, bare_blank, lambda *x: ..., ...])
def test_a_blank_is_said_to_be_one(task, answer, capsys):
    assert check(task, answer) == 0
    out = capsys.readouterr().out
    assert out.startswith(task)
    assert "not answered yet" in out
    assert len(out.splitlines()) == 1


def test_a_blank_for_numbers(capsys):
    assert check("task4a", ..., ..., ...) == check("task7b", ..., ...) == 0
    assert capsys.readouterr().out.count("not answered yet") == 2


def no_return(scores, ranking):
    probability(scores, ranking)


def unheard_of(scores, ranking):
    raise NotImplementedError('"argsort" not implemented for this type')


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (no_return, "is the `return` missing?"),
        (unheard_of, 'stops with NotImplementedError: "argsort"'),
        (lambda s, r: s[99], "stops with IndexError"),
        (lambda s: s, "stops with TypeError"),
        (lambda s, r: "0.5", "Returned a str"),
        (0.5, "Give its name without parentheses"),
    ],
)
def test_what_is_no_answer(answer, words, capsys):
    assert check("task1a", answer) == 0
    assert words in " ".join(capsys.readouterr().out.split())


def test_an_exception_is_shown_with_its_line_and_input(capsys):
    def divides(scores, ranking):
        return 1 / (len(ranking) - 3)

    check("task1a", divides)
    out = " ".join(capsys.readouterr().out.split())
    assert "ZeroDivisionError" in out
    assert "`return 1 / (len(ranking) - 3)`" in out
    assert "ranking = [1, 2, 0]" in out


def test_a_misused_checker_says_how_to_use_it():
    with pytest.raises(ValueError, match=r"no task 'task9'.*task1a"):
        check("task9", probability)
    with pytest.raises(ValueError, match="task4a takes 3"):
        check("task4a", 0.5)


# --- numbers ------------------------------------------------------------------------------------


def hand(seed):
    """The three right numbers of task 4a, and the documents before and after the exchange."""
    begin(seed)
    three = coursework.three_documents()
    other = disparities.reversed_exposure(three)
    right = float(d_ind(*three[:2])), float(d_group(*three)), float(d_group(*other))
    return right, three, other


def told(*answers, capsys):
    capsys.readouterr()
    points = check("task4a", *answers)
    return points, " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("seed", [0, 3, 2026])
def test_by_hand(seed, capsys):
    right, *_ = hand(seed)
    assert check("task4a", *(round(x, 3) for x in right)) == 6
    assert check("task4a", right[0], right[1] + 0.1, right[2]) == 4
    assert check("task4a", 7.0, 8.0, right[2]) == 2
    points, out = told(9.0, 8.0, 7.0, capsys=capsys)
    assert points == 0
    assert "on individual disparity and group disparity." in out
    points, out = told(right[0] + 0.1, *right[1:], capsys=capsys)
    assert "on individual disparity." in out
    assert f"{right[0]:.3f}" not in out  # what is wrong, never what is right


def test_by_hand_each_number_counts_for_itself(capsys):
    right, *_ = hand(0)
    assert told(right[0], ..., ..., capsys=capsys)[0] == 2
    points, out = told(right[0], right[1], ..., capsys=capsys)
    assert points == 4
    assert "D_group after the exchange: not answered yet." in out


GROUP_BY_HAND = {
    "mean of ratios": mean_of_ratios,
    "two-sided": lambda *x: d_group(*x, hinge=torch.abs),
    "reversed": lambda *x: d_group(*x, hinge=lambda y: (-y).relu()),
    "|G|": lambda *x: d_group(*x, v=torch.sum),
    "always 0": lambda *x: torch.zeros(()),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", GROUP_BY_HAND)
def test_by_hand_no_seed_hides_a_slip_of_d_group(name, capsys):
    for seed in range(60):
        right, *both = hand(seed)
        wrong = [round(float(GROUP_BY_HAND[name](*documents)), 3) for documents in both]
        points, out = told(round(right[0], 3), *wrong, capsys=capsys)
        assert points in (2, 4), seed
        if name in ("two-sided", "always 0"):
            assert points == 4, seed
        if name == "always 0":
            assert "we cannot tell which" in out or "reversed" in out, seed


def test_by_hand_swapped_numbers_are_recognised(capsys):
    for seed in range(20):
        right, *_ = hand(seed)
        positive = max(right[1:])
        answers = [positive, *right[1:]]
        answers[1 + right[1:].index(positive)] = right[0]
        points, out = told(*answers, capsys=capsys)
        assert points == 2, seed
        assert "This is the value of D_group" in out, seed


IND_BY_HAND = {
    "reversed": (lambda v, m: d_ind(v, m, hinge=lambda y: (-y).relu()), "sign is reversed"),
    "(i, i)": (lambda v, m: 7 / 4 * d_ind(v, m), "pairs (i, i) are missing"),
    "n squared": (lambda v, m: 7 / 9 * d_ind(v, m), "divided by n * n"),
    "strict": (lambda v, m: d_ind(v, m, pair=lambda a, b: a > b > 0), "you have M_i > M_j"),
    "a tie one way": (lambda v, m: tie_one_way(v, m, 1), "only one direction"),
    "a tie the other way": (lambda v, m: tie_one_way(v, m, -1), "only one direction"),
    "two-sided": (lambda v, m: d_ind(v, m, hinge=torch.abs), "in both directions"),
}


def tie_one_way(v, m, way):
    n = range(len(m))
    pairs = [(i, j) for i in n for j in n if m[i] > m[j] or (m[i] == m[j] and way * (j - i) >= 0)]
    return sum((v[i] / m[i] - v[j] / m[j]).relu() for i, j in pairs) / len(pairs)


@pytest.mark.thorough
def test_by_hand_no_seed_hides_a_slip_or_takes_it_for_another(capsys):
    """With three decimals a reversed sign passed for 4 of 60 seeds, a tie one way for 8 of 45."""
    for seed in range(60):
        right, three, _ = hand(seed)
        right = [round(x, 3) for x in right]
        assert check("task4a", *right) == 6
        for name, (wrong, words) in IND_BY_HAND.items():
            points, out = told(round(float(wrong(*three[:2])), 3), *right[1:], capsys=capsys)
            assert points == 4, (seed, name)
            assert words in out, (seed, name)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", learning.TELLING_RUNS)
def test_the_runs_tell_every_slip_from_what_is_right_and_from_each_other(seed):
    ways = [learning.LOOP.right, *learning.LOOP.slips.values()]
    ends = [torch.cat([way(*run) for run in learning.runs(seed)]) for way in ways]
    assert min((a - b).abs().max() for a, b in itertools.combinations(ends, 2)) > 0.02


def test_the_data_of_the_sweep_tell_every_slip():
    for seed in learning.TELLING_SWEEPS:
        ((data, lams),) = learning.sweeps(seed)
        right = torch.tensor(sweep(data, lams))
        for name in ("one_stream", "carried_on", "individual", "lam_ignored"):
            wrong = learning.sweep.slips[name](data, lams)
            assert (wrong - right).abs().max() > 0.0015  # twice 5e-4, and room


def test_the_seed_changes_the_documents_and_the_data():
    first, three = begin(1), coursework.three_documents()
    second, others = begin(2), coursework.three_documents()
    assert not torch.equal(first.features, second.features)
    assert any(not torch.equal(a, b) for a, b in zip(three, others, strict=True))


def test_reading_the_curve(capsys):
    data = begin(3)
    rows = sweep(data, coursework.LAMBDAS)
    place = next(k for k, row in enumerate(rows) if row[1] <= rows[0][1] / 2)
    lam, cost = coursework.LAMBDAS[place], rows[0][0] - rows[place][0]

    def loss(k):
        return round(rows[0][0] - rows[k][0], 4)

    assert check("task7b", lam, round(cost, 4)) == 5
    assert check("task7b", lam, round(rows[0][0], 4) - round(rows[place][0], 4)) == 5
    for answers, points, words in (
        ((coursework.LAMBDAS[place - 1], loss(place - 1)), 2, "of its value at lambda = 0"),
        ((coursework.LAMBDAS[-1], loss(-1)), 2, "the first lambda with half of it or less"),
        ((coursework.LAMBDAS[-1], cost), 0, "none of the slips that we know"),
        ((11, cost), 2, "none of the lambdas"),
        ((lam, ...), 2, "not answered yet"),
        ((lam, round(100 * cost, 2)), 2, "per cent"),
        ((lam, -cost), 2, "sign is reversed"),
        ((lam, 100 * cost), 2, "per cent"),
        ((lam, cost / rows[0][0]), 2, "relative to the start"),
        ((lam, round(cost, 3)), 2, "four decimals"),
        ((0.0, 0.5), 0, "cannot tell which it is. Your answer: 0.5"),
        (([1, 2], cost), 2, "wanted is ()"),
        (("a few", cost), 2, "Returned a str"),
    ):
        capsys.readouterr()
        assert check("task7b", *answers) == points
        assert words in " ".join(capsys.readouterr().out.split())


def test_the_score_adds_up_and_begins_anew(capsys):
    check("task1a", probability)
    check("task3a", sampled)
    assert score() == 14
    check("task3a", payments)
    assert score() == 8
    begin(seed=0)
    capsys.readouterr()
    assert score() == 0
    out = capsys.readouterr().out
    assert "total" in out
    assert out.count(" - of") == len(TASKS)


def test_the_checker_needs_torch_and_numpy_only():
    code = (
        "import sys; import checker; "
        "print(*[m for m in ('matplotlib', 'scipy', 'sklearn', 'lightgbm', 'joblib', 'ipywidgets')"
        " if m in sys.modules])"
    )
    place = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "book/coursework"))),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=place
    )
    assert done.stdout.strip() == ""


# --- the notebooks -----------------------------------------------------------------------------


def cells(name):
    return jupytext.read(BOOK / f"{name}.md").cells


def sources(name, kind="code"):
    return [cell.source for cell in cells(name) if cell.cell_type == kind]


def test_the_assignment_is_what_the_solution_makes():
    text = tool.assignment_text((BOOK / "solution.md").read_text())
    assert (BOOK / "assignment.md").read_text() == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Eight tasks", "Nine tasks"),
        ("scores.softmax(-1)", "scores.exp()"),
        ("SEED = 2026", "SEED = 1"),
    ],
)
def test_drift_between_the_two_is_seen(old, new):
    source = (BOOK / "solution.md").read_text()
    assert old in source
    assert tool.assignment_text(source.replace(old, new)) != (BOOK / "assignment.md").read_text()


def test_nothing_of_the_solution_is_left_in_the_assignment():
    regions = [m[2] for s in sources("solution") for m in tool.REGION.finditer(s)]
    assert len(regions) == len(TASKS)
    lines = {line.strip() for region in regions for line in region.splitlines()}
    lines = {x for x in lines if len(x) > 16}
    assert len(lines) > 60
    code = "\n".join(sources("assignment"))
    assert not [x for x in lines if x in code]
    given_away = (BOOK / "assignment.md").read_text() + (BOOK / "assignment.ipynb").read_text()
    hidden = [
        c for c in cells("solution") if {"solution", "answer"} & set(c.metadata.get("tags", []))
    ]
    assert len(hidden) >= 8
    for cell in hidden:
        assert not [x for x in cell.source.splitlines() if len(x) > 20 and x in given_away]
    assert "Marking notes" not in given_away
    assert given_away.count(tool.LINE) >= 3


@pytest.mark.parametrize(
    "source",
    [
        "### BEGIN SOLUTION\nx = 1",
        "x = 1\n### END SOLUTION",
        "### END SOLUTION\n### BEGIN SOLUTION",
    ],
)
def test_unmatched_markers_are_refused(source):
    with pytest.raises(ValueError, match="do not match"):
        tool.blank(source)


def test_a_blank_stands_where_the_solution_stood():
    source = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION\n\n\ny = ...\n"
    made = tool.blank(source + "### BEGIN SOLUTION\ny = 2\n### END SOLUTION")
    names = {}
    exec(made, names)
    assert names["y"] is ...
    with pytest.raises(NotImplementedError, match="not answered yet"):
        names["f"](1)


def test_the_notebooks_use_nothing_but_the_module():
    allowed = {"math", "itertools", "torch", "fairpg_lite", "checker", "matplotlib"}
    for name in ("assignment", "solution"):
        for source in sources(name):
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Import):
                    found = {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    found = {node.module.split(".")[0]}
                else:
                    continue
                assert found <= allowed


def test_the_points_in_the_text_are_the_checker_s():
    text = (BOOK / "assignment.md").read_text()
    for name, task in TASKS.items():
        label = name.removeprefix("task")
        if label[-1].isalpha():
            assert f"**{label} ({task.points} points).**" in text
        else:
            assert re.search(rf"^## Task {label}: .* \({task.points} points\)$", text, re.M)
    for number, points in re.findall(r"^## Task (\d): .* \((\d+) points\)$", text, re.M):
        parts = [task.points for name, task in TASKS.items() if name[4] == number]
        assert sum(parts) == int(points)


def test_the_assignment_is_a_page_and_the_solution_is_not():
    listed = files_in(yaml.safe_load((ROOT / "_toc.yml").read_text()))
    assert "book/coursework/assignment" in listed
    assert not listed & UNPUBLISHED


def test_a_published_solution_is_caught(tmp_path):
    toc = (ROOT / "_toc.yml").read_text().replace("coursework/assignment", "coursework/solution")
    (tmp_path / "_toc.yml").write_text(toc)
    (tmp_path / "book" / "coursework").mkdir(parents=True)
    for name in ("solution.md", "solution.ipynb"):
        (tmp_path / "book" / "coursework" / name).write_text((BOOK / name).read_text())
    found = problems(tmp_path / "book" / "coursework" / "solution.md", tmp_path)
    assert any("must stay out of _toc.yml" in problem for problem in found)


def test_an_untouched_assignment_runs_through_with_no_points():
    notebook = nbformat.read(BOOK / "assignment.ipynb", as_version=4)
    resources = {"metadata": {"path": str(BOOK)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    printed = "".join(
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream"
    )
    for name in TASKS:
        assert re.search(rf"^{name} .*: not answered yet", printed, re.M)
    assert re.search(r"total +0 of 100", printed)


def filled():
    """The assignment's code with each blank answered from the solution."""
    answers = iter([m[0] for s in sources("solution") for m in tool.REGION.finditer(s)])
    hole = re.compile(rf"^[ ]*{tool.COMMENT}(\n[ ]*{re.escape(tool.STUB)})?$", re.M)
    made = [hole.sub(lambda _: next(answers), source) for source in sources("assignment")]
    assert next(answers, None) is None
    return made


def test_the_assignment_filled_with_the_solution_gets_a_hundred_points(monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", plt.close)
    names = {}
    for source in filled():
        exec(source.replace("SEED = 2026", "SEED = 5"), names)
    assert names["total"] == 100
