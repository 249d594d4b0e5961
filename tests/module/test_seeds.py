"""One limit for seeds, wherever a stream of random numbers begins."""

import dataclasses

import numpy as np
import pytest
from test_data_dataset import make

import fairpg_lite as fpg
from experiments.stand_in import yahoo_like
from fairpg_lite._check import SEED_LIMIT
from fairpg_lite.cli.options import whole_number
from fairpg_lite.sweeps import Cell


@dataclasses.dataclass(frozen=True)
class Nothing:
    name: str = "nothing"

    def __call__(self, lam, seed):
        return {"value": lam}


STREAMS = {
    "synthetic": lambda seed: fpg.synthetic(2, seed=seed),
    "german_credit": lambda seed: fpg.german_credit(seed, n_train=1, n_test=1),
    "RankingDataset.split": lambda seed: make([1, 1]).split((0.5, 0.5), seed=seed),
    "yahoo_like": lambda seed: yahoo_like(1, seed),
    "TrainConfig": lambda seed: fpg.TrainConfig(seed=seed),
    "Cell": lambda seed: Cell(Nothing(), 0.0, seed),
}


@pytest.mark.parametrize("where", STREAMS)
@pytest.mark.parametrize("seed", [10**23, SEED_LIMIT, -1, 0.5, True, "7"])
def test_a_seed_that_is_none_is_named(where, seed):
    """10**23 used to end in `Overflow when unpacking long long`."""
    with pytest.raises(
        (TypeError, ValueError), match=rf"^{where}: .*seed.* is {seed!r}; "
    ) as error:
        STREAMS[where](seed)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("where", STREAMS)
def test_every_seed_below_the_limit_serves(where):
    for seed in (0, np.int64(3), SEED_LIMIT - 1):
        STREAMS[where](seed)


def test_the_command_line_has_the_same_limit():
    assert whole_number(str(SEED_LIMIT - 1)) == SEED_LIMIT - 1
    with pytest.raises(Exception, match=r"is not a whole number, 0 to 2\^61 - 1"):
        whole_number(str(SEED_LIMIT))
