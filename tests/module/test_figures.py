"""The house style, and the trade-off curve of any table of runs."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from scipy import stats

from fairpg_lite.figures import PALETTE, plot_tradeoff, style
from fairpg_lite.measures import MEASURES
from tools.run_chapters import palette_png


def table(seeds):
    rng = np.random.default_rng(0)
    rows = [
        {"experiment": e, "lam": lam, "seed": s, "ndcg": rng.random(), "d_group": rng.random()}
        for e in ("a name of one's own", "fair_pg_rank") for lam in (10.0, 0.0, 2.5)
        for s in range(seeds)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_styles_colours_are_the_palettes():
    matplotlib = pytest.importorskip("matplotlib")
    before = dict(matplotlib.rcParams)
    with style():
        cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
        assert [to_hex(colour).upper() for colour in cycle] == list(PALETTE.values())
    assert dict(matplotlib.rcParams) == before


def test_every_experiment_is_drawn_by_its_name_with_student_intervals():
    runs = table(seeds=4)
    ax = plot_tradeoff(runs)
    _, names = ax.get_legend_handles_labels()
    assert names == ["a name of one's own", "fair_pg_rank"]
    for drawn, (_, own) in zip(ax.containers, runs.groupby("experiment", sort=False), strict=True):
        line, _, (across, up) = drawn
        lams = [0.0, 2.5, 10.0]
        for measure, points, bars, axis in (
            ("d_group", line.get_xdata(), across, 0), ("ndcg", line.get_ydata(), up, 1)
        ):  # fmt: skip
            values = [own[own.lam == lam][measure] for lam in lams]
            np.testing.assert_allclose(np.asarray(points, float), [v.mean() for v in values])
            ends = [np.asarray(s, float)[:, axis] for s in bars.get_segments()]
            expected = [stats.t.interval(0.95, 3, v.mean(), stats.sem(v)) for v in values]
            np.testing.assert_allclose(ends, expected)
    assert {text.get_text() for text in ax.texts} == {"λ=0", "λ=2.5", "λ=10"}


def test_one_seed_has_no_interval_and_other_measures_can_be_drawn():
    runs = table(seeds=1).rename(columns={"d_group": "own"})
    ax = plot_tradeoff(runs, x="own")
    assert ax.get_xlabel() == "own"
    assert ax.get_ylabel() == "NDCG (higher is better)"
    (_, _, bars), _ = ax.containers
    assert all(np.ptp(s) == 0 for s in np.asarray(bars[1].get_segments(), float)[0].T)


def test_axes_are_any_two_columns_by_the_labels_of_the_measures():
    ax = plot_tradeoff(table(seeds=1), x="ndcg", y="d_group")
    assert ax.get_xlabel() == MEASURES["ndcg"].axis_label
    assert ax.get_ylabel() == MEASURES["d_group"].axis_label


def test_a_column_that_is_absent_is_named():
    with pytest.raises(ValueError, match="no column 'd_ind', but experiment, lam, seed"):
        plot_tradeoff(table(seeds=1), x="d_ind")


def test_a_palette_png_is_smaller_and_the_same_picture():
    figure = plot_tradeoff(table(seeds=2)).figure
    content = io.BytesIO()
    figure.savefig(content, format="png")
    small = palette_png(content.getvalue())
    assert len(small) < 0.7 * len(content.getvalue())
    assert b"Software" not in small
    with pytest.raises(OSError, match="cannot identify"):
        palette_png(b"no picture")
