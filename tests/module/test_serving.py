"""Lists for requests: first k places of any policy, seeds per user and day, and the example."""

import importlib.util
import json
import threading
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import torch

from fairpg_lite import DoublyStochastic, Mixture, PlackettLuce
from fairpg_lite.policy import FixedRanking, first_places
from fairpg_lite.serving import seed_for

SALT = bytes(range(16))
EXAMPLE = Path(__file__).resolve().parents[2] / "book" / "examples" / "serve.py"


def policies():
    scores = torch.tensor([1.0, 0.0, 2.0, -1.0], dtype=torch.float64)
    fixed = FixedRanking(torch.tensor([2, 0, 1, 3]), dtype=torch.float64)
    learned = PlackettLuce(scores)
    return {
        "Plackett-Luce": learned,
        "matrix": DoublyStochastic(learned.position_probs()),
        "fixed": fixed,
        "mixture": Mixture([fixed, PlackettLuce(0 * scores)], [0.7, 0.3]),
    }


@pytest.mark.parametrize("name", list(policies()))
def test_the_first_places_have_the_policys_probabilities(name):
    policy = policies()[name]
    generator = torch.Generator().manual_seed(0)
    drawn = policy.sample((6000,), generator, k=2)
    assert drawn.shape == (6000, 2)
    probs = policy.position_probs()[:, :2]
    for position in range(2):
        found = torch.bincount(drawn[:, position], minlength=4) / 6000
        assert (found - probs[:, position]).abs().max() < 0.03
    again = first_places(policy, 2, (6000,), torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again)
    assert first_places(policy, None).shape == (4,)
    for k in (0, 5, 1.5):
        with pytest.raises(ValueError, match=f"k is {k}"):
            policy.sample(k=k)


def test_a_policy_of_ones_own_is_cut():
    class Own:
        mask = None
        mode = torch.tensor([1, 0, 2])

        def exposure(self, position_bias=None): ...

        def position_probs(self): ...

        def sample(self, sample_shape=(), generator=None):
            return self.mode.expand(*sample_shape, 3)

    assert first_places(Own(), 2, (5,)).tolist() == [[1, 0]] * 5
    with pytest.raises(ValueError, match="k is 4"):
        first_places(Own(), 4)


def test_users_and_days_have_seeds_of_their_own():
    names = [(user, day) for user in ("a", "b", "ab", "") for day in ("1", "2", "b1", "")]
    seeds = {seed_for(user, day, salt=SALT) for user, day in names}
    assert len(seeds) == len(names)
    assert all(0 <= seed < 2**60 for seed in seeds)
    assert seed_for("a", "1", salt=SALT) == seed_for("a", "1", salt=SALT)
    assert seed_for("a", "1", salt=SALT) != seed_for("a", "1", salt=SALT[::-1])


def test_lists_of_many_users_follow_the_policy():
    policy = PlackettLuce(torch.tensor([1.0, 0.0, 0.5]))
    first = []
    for user in range(3000):
        seed = seed_for(str(user), "today", salt=SALT)
        first.append(int(policy.sample(k=1, generator=torch.Generator().manual_seed(seed))))
    share = torch.bincount(torch.tensor(first), minlength=3) / 3000
    assert (share - policy.scores.softmax(-1)).abs().max() < 0.04


def test_wrong_seeds_are_refused():
    with pytest.raises(TypeError, match="user is a int"):
        seed_for(7, "today", salt=SALT)
    with pytest.raises(TypeError, match="give bytes"):
        seed_for("a", "today", salt="May")
    with pytest.raises(ValueError, match="guessed"):
        seed_for("a", "today", salt=b"May")


def test_the_example_serves_lists():
    spec = importlib.util.spec_from_file_location("serve", EXAMPLE)
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)

    def get(where):
        with urlopen(f"http://127.0.0.1:{server.server_port}{where}", timeout=30) as answer:
            return json.load(answer)["ranking"]

    with serve.make_server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            anna = get("/rank?user=anna&query=1&k=5")
            assert len(set(anna)) == 5
            assert anna == get("/rank?user=anna&query=1&k=5")
            assert anna == get("/rank?user=anna&query=1")[:5]
            others = {tuple(get(f"/rank?user={user}&query=1&k=5")) for user in range(8)}
            assert len(others) > 1
            for wrong in ("/", "/rank?user=a&query=99", "/rank?user=a&query=1&k=0"):
                with pytest.raises(HTTPError, match="400"):
                    get(wrong)
        finally:
            server.shutdown()
            thread.join()
