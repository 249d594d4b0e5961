"""Lists of 10 out of 1,000 candidates per second of one core, through the documented calls.

python -m benchmarks.serving

The mark is 10,000 lists a second. "one policy, many requests" draws from a policy that is kept, as
a server does for the candidates of a popular query. "scores come with the request" makes the policy
of new scores each time. "per user and day" gives every request its own generator and seed.
"""

import time
from collections.abc import Callable
from statistics import median

import torch

from benchmarks import _timing
from fairpg_lite import DoublyStochastic, Mixture, PlackettLuce
from fairpg_lite.policy import FixedRanking
from fairpg_lite.serving import seed_for

COMMAND = "python -m benchmarks.serving"
CANDIDATES = 1_000
PLACES = 10
REQUESTS = 500
MARK = 10_000


def ways() -> dict[str, Callable[[], object]]:
    """What is timed: each function answers REQUESTS requests."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(CANDIDATES, generator=generator, dtype=torch.float64)
    temperature = 2.0
    policy = PlackettLuce(scores / temperature)
    random_lists = PlackettLuce(torch.zeros_like(scores))
    mixture = Mixture([FixedRanking(policy.mode), random_lists], [0.8, 0.2])
    salt = bytes(range(16))

    def kept() -> None:
        for _ in range(REQUESTS):
            policy.sample(k=PLACES, generator=generator)

    def with_scores() -> None:
        for _ in range(REQUESTS):
            PlackettLuce(scores / temperature).sample(k=PLACES, generator=generator)

    def per_user() -> None:
        for user in range(REQUESTS):
            seed = seed_for(str(user), "2026-11-18", salt=salt)
            policy.sample(k=PLACES, generator=torch.Generator().manual_seed(seed))

    def together() -> None:
        policy.sample((REQUESTS,), k=PLACES, generator=generator)

    def mixed() -> None:
        for _ in range(REQUESTS):
            mixture.sample(k=PLACES, generator=generator)

    def whole() -> None:
        for _ in range(REQUESTS):
            policy.sample(generator=generator)

    return {
        "one policy, many requests": kept,
        "scores come with the request": with_scores,
        "per user and day": per_user,
        "many lists at once": together,
        "mixture with random lists": mixed,
        "whole lists, sorted": whole,
    }


def rates_of(work: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Lists per second of one core's time, each way in turn; the first round warms up.

    It is the processor's time that counts: on a busy machine the clock on the wall goes on while
    others compute.
    """
    times: dict[str, list[float]] = {name: [] for name in work}
    for round_number in range(repeats + 1):
        for name, function in work.items():
            start = time.process_time()
            function()
            if round_number:
                times[name].append(time.process_time() - start)
    return {name: REQUESTS / median(spent) for name, spent in times.items()}


def main() -> None:
    """Print lists per second, and store them."""
    torch.set_num_threads(1)
    rates = rates_of(ways(), repeats=11)
    print(f"lists of {PLACES} out of {CANDIDATES}; the mark is {MARK:,} a second of one core")
    for name, rate in rates.items():
        print(f"{name:<30} {rate:>9,.0f} lists a second")
    matrix = DoublyStochastic.uniform(100, dtype=torch.float64)
    first = _timing.seconds(lambda: matrix.sample(k=PLACES))
    again = _timing.seconds(lambda: matrix.sample(k=PLACES))
    print(
        f"a matrix of 100 documents: the first list takes {first / again:,.0f} times as long as "
        "the second, because the matrix is decomposed once"
    )
    _timing.store("serving", COMMAND, lists_per_second=rates, mark=MARK)


if __name__ == "__main__":
    main()
