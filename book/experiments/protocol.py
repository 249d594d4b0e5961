"""The protocol of the comparisons in chapters 9 to 13, written down before anything was run.

**What is drawn again.** A repetition (a seed) draws everything that a new study would draw again:
the training and the test queries, the initial weights, the order of the queries and the sampled
rankings. On synthetic data both sets of queries are new. On German Credit the 1,000 persons are
split anew, 800 to train and 200 to test, and both sets of queries are drawn from their side. On the
MSLR sample queries play the persons' part: for the comparison at equal D_ind all 84 are split anew,
32 to train, 10 to validate, 42 to test. The rankers of Table 1 keep the 42 test queries that the
sample came with, and their interval is a bootstrap over queries and seeds. Yahoo's files and their
stand-in come divided, so there a repetition draws what training draws. 40 repetitions decide; a
variant that only stands beside has 20, as the splits of MSLR have; the seeds of the stand-in are 5.

**What is chosen, and on which data.** A method may choose its lambda and its form, see below. For
each repetition we choose what is best on average in the *other* repetitions. DELTR's learning rate
is chosen by its own training loss, RankSVM's C and the epoch on MSLR by validation queries. Nothing
is chosen on the queries that judge.

**Grids.** Every method of group fairness has `GRID_SIZE` lambdas, 0 among them. DELTR's are the
text's. Those of the others go from 0 to where the method does all that it can: Fair-PG-Rank's to
the largest of the text or the authors' figure, 25; post-processing's to where the disparity on the
estimates is gone, or with the authors' factor to the end of the authors' range.

**Terms.** Every trained model may be used in three forms: as a `policy`, `sorted` (its most
probable ranking; of a linear programme, documents by expected exposure), or at a `temperature` that
divides its scores (a programme has none). The first two may be mixed with random lists, with any
probability. The terms are the same for all methods, for PG-Rank (lambda = 0), too.

**Comparison.** NDCG at equal disparity: at `SHARES` of the D_group that PG-Rank has on the test
queries of the repetition. The probability of a random list, or the temperature, is what brings a
form to that D_group; a form that is below it already stays as it is. The exposure of a mixture is
the mean of the exposures, so its NDCG and D_group are computed and not drawn.

**Interval.** Student's, over repetitions, of differences within a repetition. Splits of the same
persons share them, so where a pool of persons or queries is split, the variance of the mean is
s² (1/J + n_test/n_train) instead of s²/J (Nadeau and Bengio, 2003): `overlap`. The interval then
speaks of new persons; without that term it would speak of new splits of these.

**What decides.** A claim has checks, each a number and the region in which the claim puts it. A
check says *yes* if its number is in the region and *no* if it is outside, provided that the nearest
edge of the region can be rejected, and *open* otherwise. The two-sided p-values of all checks of a
claim are compared with Holm's levels for 5 %, whichever way they point. All yes: the claim holds.
All no: it does not hold. Some yes and some no, whatever else: it holds in part. Otherwise some are
open and the others, if any, agree: it *cannot be told*. Yes and no are treated alike. A claim
whose data are not here cannot be tested here.

**Text and code.** The text of the paper decides, where it is silent the authors' code. Where the
two differ, both are run and judged side by side, the text first. Where the text can be read in two
ways, both readings are checks of the claim.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from fairpg_lite.sweeps import load_cells

#: What a table's sidecar calls this protocol. Another number is another protocol.
VERSION = 2
#: Repetitions that decide, and those of a variant that only stands beside.
REPETITIONS = 40
BESIDE_REPETITIONS = 20
#: Lambdas of every method of group fairness.
GRID_SIZE = 8
#: Parts of PG-Rank's disparity at which methods are compared.
SHARES = {0.75: "¾", 0.5: "½", 0.25: "¼"}
#: The chance of a wrong yes or no among all checks of one claim.
LEVEL = 0.05


class EarlierProtocolError(ValueError):
    """A stored table that was made by other rules."""


def load_table(directory: str | Path) -> list[dict[str, Any]]:
    """The stored runs of a directory, if they were made by this protocol.

    Args:
        directory: One of the folders of ``results``.

    Returns:
        What `fairpg_lite.sweeps.load_cells` returns.

    Raises:
        EarlierProtocolError: The table is of another protocol; says which command makes it anew.
    """
    refuse_earlier(directory)
    return load_cells(directory)


def refuse_earlier(directory: str | Path) -> None:
    """Raise an error if the directory has a table of another protocol.

    Args:
        directory: One of the folders of ``results``; it may be empty.
    """
    sidecar = Path(directory) / "table.json"
    if not sidecar.exists():
        return
    about = json.loads(sidecar.read_text("utf-8"))
    version = about.get("protocol", 1)
    if version != VERSION:
        command = about.get("command", "python -m experiments ...")
        raise EarlierProtocolError(
            f"{sidecar} was made by protocol {version}, and the comparisons need protocol "
            f"{VERSION}; make the table anew with `{command} --overwrite`."
        )


def overlap(config: Mapping[str, Any]) -> float:
    """How much the splits of two repetitions share, as the ratio n_test / n_train of Nadeau and
    Bengio; 0 where every repetition draws from an unlimited source.

    Args:
        config: The settings of a stored run.

    Returns:
        What is added to 1/J in the variance of a mean over J repetitions.

    >>> overlap({"problem": {"class": "GermanData", "split": "random", "redrawn": True}})
    0.25
    """
    problem = config.get("problem", {})
    if problem.get("class") == "GermanData" and problem.get("redrawn"):
        return 200 / 800
    if problem.get("data") == "mslr-splits":
        return 42 / 42
    return 0.0


def standard_error(values: Sequence[float] | np.ndarray, shared: float = 0.0) -> float:
    """The standard error of a mean over repetitions, nan for one.

    Args:
        values: One for each repetition ``(J,)``.
        shared: What `overlap` returns.

    Returns:
        sqrt(s² (1/J + shared)).
    """
    count = len(values)
    if count < 2:
        return math.nan
    return float(np.std(values, ddof=1)) * math.sqrt(1 / count + shared)


def p_value(value: float, edge: float, error: float, freedom: int) -> float:
    """The two-sided p-value of "the mean is at the edge", by Student's law; 1 without an error.

    Args:
        value: The mean.
        edge: Where a region ends; infinite edges are rejected for certain.
        error: The mean's standard error.
        freedom: Its degrees of freedom.

    Returns:
        Between 0 and 1.
    """
    if math.isinf(edge):
        return 0.0
    if math.isnan(error):
        return 1.0
    if error == 0.0:
        return 1.0 if value == edge else 0.0
    return float(2 * stats.t.sf(abs(value - edge) / error, freedom))


def rejected(p_values: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Holm's step-down procedure.

    Args:
        p_values: Of all checks of one claim.
        level: The chance of a wrong rejection among them.

    Returns:
        For each whether it is rejected.

    >>> rejected([0.001, 0.04, 0.03])
    [True, False, False]
    """
    order = np.argsort(p_values, kind="stable")
    found = [False] * len(p_values)
    for step, place in enumerate(order):
        if p_values[place] > level / (len(p_values) - step):
            break
        found[int(place)] = True
    return found


def choose_elsewhere(values: np.ndarray) -> np.ndarray:
    """What a method reaches if its setting is chosen on the other repetitions.

    Args:
        values: ``(J, settings)``, higher is better; J of at least 2.

    Returns:
        ``(J,)``, for each repetition the value of the setting with the highest mean in the others.

    >>> choose_elsewhere(np.array([[1.0, 9.0], [5.0, 0.0], [5.0, 0.0]]))
    array([1., 0., 0.])
    """
    total = values.sum(axis=0)
    reached = []
    for row in values:
        setting = int(np.argmax(total - row))
        reached.append(row[setting])
    return np.array(reached)
