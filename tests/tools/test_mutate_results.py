"""The tool that changes stored numbers: unnoticed is what is shown and what no check looks at."""

import textwrap

import matplotlib.pyplot as plt
import pytest
import torch

from tools import mutate_results
from tools.mutate_results import Laboratory, Mutation, Tables, code_cells, moved, rearranged

CHAPTER = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

```{code-cell} ipython3
from fairpg_lite.sweeps import load_cells

cells = load_cells("../results/rich-get-richer")


def ndcg(name):
    found = [c["result"]["ndcg"] for c in cells if c["experiment"] == name]
    return sum(found) / len(found)
```

```{code-cell} ipython3
alone = [1.0]
alone.append(2.0)
```

```{code-cell} ipython3
best = ndcg("sorting-rate")
print(f"{best:.4f} {ndcg('uniform-rate'):.4f} {alone}")
```

```{code-cell} ipython3
:tags: [remove-cell]

assert best > 0.9
```
"""


@pytest.fixture
def laboratory(tmp_path, monkeypatch):
    """A chapter that shows two numbers and checks one of them."""
    monkeypatch.chdir(mutate_results.ROOT / "book")
    monkeypatch.setattr(plt, "show", plt.show)  # the tool's own ends with the test
    threads = torch.get_num_threads()
    chapter = tmp_path / "99_two_numbers.md"
    chapter.write_text(CHAPTER, encoding="utf-8")
    stored = Tables()
    made = Laboratory(chapter, stored)
    usual = made.first_run()
    assert usual.red == []
    yield made, usual
    stored.remove()
    torch.set_num_threads(threads)
    assert mutate_results.sweeps.load_cells == stored.read


def lowered(experiment):
    change = moved(["ndcg"], lambda x: x - 0.3)
    return Mutation("rich-get-richer", experiment, "NDCG - 0.3", change)


def test_a_check_notices_what_it_looks_at(laboratory):
    made, usual = laboratory
    (red,) = made.outcome(lowered("sorting-rate"), stop=False).red
    assert "AssertionError" in red
    unseen = made.outcome(lowered("uniform-rate"))
    assert unseen.red == []
    assert unseen.shown != usual.shown
    elsewhere = made.outcome(lowered("pg_rank-weighted"))
    assert (elsewhere.red, elsewhere.shown) == ([], usual.shown)


def test_the_exit_code_says_whether_something_passed_unnoticed(laboratory, capsys):
    made, _ = laboratory
    mutations = [lowered("sorting-rate"), lowered("uniform-rate"), lowered("pg_rank-weighted")]
    assert mutate_results.report(made, mutations, show_all=False) == 1
    said = capsys.readouterr().out
    assert "UNNOTICED  rich-get-richer/uniform-rate" in said
    assert "1 noticed, 1 unnoticed, 1 not shown" in said


def test_a_mutation_changes_its_experiment_alone(laboratory):
    made, _ = laboratory
    path = mutate_results.ROOT / "results" / "rich-get-richer"
    before = made.tables.load(path)
    made.tables.change(lowered("sorting-rate"))
    for old, new in zip(before, made.tables.load(path), strict=True):
        gap = old["result"]["ndcg"] - new["result"]["ndcg"]
        expected = 0.3 if old["experiment"] == "sorting-rate" else 0.0
        assert gap == pytest.approx(expected)
        assert old["result"].keys() == new["result"].keys()


def test_rearranged_lambdas():
    rows = [{"lam": lam, "seed": s, "d": lam + s} for lam in (0.0, 1.0, 5.0) for s in (0, 1)]
    rearranged(["d"], lambda lams: lams[::-1])(rows)
    assert [row["d"] for row in rows] == [5.0, 6.0, 1.0, 2.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("sources", "dependent"),
    [
        (['x = load_results("a")', "y = x"], [True, True]),
        (['x = load_results("a")', "x = 1", "y = x"], [True, False, False]),
        (["y = []", 'y.append(load_results("a"))'], [True, True]),
        (["import math", 'x = load_results("a")', "math.sqrt(2)"], [False, True, False]),
        (['for x in load_results("a"):\n    pass', "for x in (1, 2):\n    x"], [True, False]),
        (['x = load_results("a")', "def f():\n    return x", "f()"], [True, True, True]),
    ],
)
def test_what_depends_on_stored_numbers(sources, dependent, tmp_path):
    fences = [f"```{{code-cell}} ipython3\n{source}\n```\n" for source in sources]
    head = CHAPTER.split("```")[0]
    path = tmp_path / "99_dependence.md"
    path.write_text(textwrap.dedent(head) + "\n".join(fences), encoding="utf-8")
    assert [cell.reads for cell in code_cells(path)] == dependent
