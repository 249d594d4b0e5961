"""Planted bugs that put a wrong function in the place of a right one, whatever the source says.

Each is a slip somebody has made: the authors' code, the paper's appendix, or an early draft here.
"""

import math
import sys
from collections.abc import Callable

import torch

PLANTS: dict[str, tuple[Callable[[], None], str]] = {}


def caught_by(test: str, name: str):
    """Registers a function that plants the bug ``name``, which ``test`` must catch."""

    def register(plant: Callable[[], None]) -> Callable[[], None]:
        PLANTS[name] = (plant, test)
        return plant

    return register


def swap(right, wrong) -> None:
    """Put ``wrong`` wherever the package refers to ``right``."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "fairpg_lite":
            for key, value in list(vars(module).items()):
                if value is right:
                    setattr(module, key, wrong)


def rewrite(owner: type, name: str, make) -> None:
    """Put ``make(right)`` in the place of a method."""
    right = getattr(owner, name)
    static = isinstance(vars(owner)[name], staticmethod)
    wrong = make(right)
    setattr(owner, name, staticmethod(wrong) if static else wrong)


@caught_by("test_disparity.py::test_group_by_hand", "reversed sign of D_group")
def _():
    from fairpg_lite.disparity import Hinge

    rewrite(Hinge, "forward", lambda right: lambda ctx, ratio, *rest: right(ctx, -ratio, *rest))


@caught_by(
    "test_gradients.py::test_sampled_gradient_of_individual_disparity_is_the_papers_formula",
    "the hinge's slope counts one side only",
)
def _():
    from fairpg_lite.disparity import Hinge

    def forward(ctx, ratio, merit, bar):
        pairs = (merit.unsqueeze(-1) >= bar.unsqueeze(-2)).to(ratio.dtype)
        excess = ((ratio.unsqueeze(-1) - ratio.unsqueeze(-2)) * pairs).relu()
        ctx.save_for_backward(excess.sign().sum(-1))
        return excess.sum((-1, -2)), pairs.sum((-1, -2))

    rewrite(Hinge, "forward", lambda right: forward)


@caught_by("test_disparity.py::test_group_by_hand", "|G| factor: sum of exposures over mean merit")
def _():
    from fairpg_lite.disparity import group_ratios

    def wrong(exposure, merit, groups, mask=None):
        ratio, mean = group_ratios(exposure, merit, groups, mask)
        index = torch.unique(groups, return_inverse=True)[1]
        return ratio * torch.zeros_like(ratio).scatter_add(-1, index, exposure * 0 + 1), mean

    swap(group_ratios, wrong)


@caught_by("test_mutants.py::test_masked_members_are_not_paid", "missing mask in D_group")
def _():
    from fairpg_lite.disparity import group_ratios

    swap(group_ratios, lambda exposure, merit, groups, mask: group_ratios(exposure, merit, groups))


@caught_by("test_disparity.py::test_padding_is_invisible", "missing mask in D_ind")
def _():
    from fairpg_lite import disparity

    swap(disparity._check_inputs, lambda where, exposure, merit, mask: merit)


@caught_by("test_disparity.py::test_individual_against_loop", "H without M_j > 0")
def _():
    from fairpg_lite.disparity import Hinge

    rewrite(Hinge, "forward", lambda right: lambda ctx, ratio, m, bar: right(ctx, ratio, m, m))


@caught_by("test_disparity.py::test_individual_by_hand", "pairs (i, i) not counted")
def _():
    from fairpg_lite.disparity import Hinge

    def make(right):
        def forward(ctx, ratio, merit, bar):
            value, count = right(ctx, ratio, merit, bar)
            return value, count - (merit > 0).sum(-1)

        return forward

    rewrite(Hinge, "forward", make)


@caught_by(
    "test_disparity.py::test_two_sided_is_the_absolute_difference_of_the_ratios",
    "D_group counts one direction even where both were asked for",
)
def _():
    from fairpg_lite import group_disparity

    def wrong(*args, two_sided=False, **options):
        return group_disparity(*args, **options)

    swap(group_disparity, wrong)


@caught_by("test_gradients.py::test_expect_written_out", "missing baseline")
def _():
    from fairpg_lite import PlackettLuce

    def make(right):
        return lambda self, values, rankings, baseline="mean": right(self, values, rankings, None)

    rewrite(PlackettLuce, "expect", make)


@caught_by(
    "test_gradients.py::test_leave_one_out_is_a_multiple_of_the_mean_baseline",
    "leave-one-out without its factor",
)
def _():
    from fairpg_lite import PlackettLuce

    def make(right):
        return lambda self, values, rankings, baseline="mean": right(
            self, values, rankings, "mean" if baseline == "loo" else baseline
        )

    rewrite(PlackettLuce, "expect", make)


@caught_by(
    "test_gradients.py::test_score_function_estimator_in_expectation",
    "gradient summed over S, not averaged",
)
def _():
    from fairpg_lite import PlackettLuce

    def make(right):
        def expect(self, values, rankings, baseline="mean"):
            mean = right(self, values, rankings, baseline)
            return mean.detach() + len(rankings) * (mean - mean.detach())

        return expect

    rewrite(PlackettLuce, "expect", make)


@caught_by("test_metrics.py::test_the_log_is_base_two", "wrong log base")
def _():
    from fairpg_lite import position_bias

    swap(position_bias, lambda *args, **options: position_bias(*args, **options) / math.log(2.0))


@caught_by("test_exact.py::test_ranking_exposure_pays_the_position", "r and its inverse swapped")
def _():
    from fairpg_lite import ranking_exposure

    def wrong(rankings, *rest):
        return ranking_exposure(rankings.argsort(-1), *rest)

    swap(ranking_exposure, wrong)


@caught_by(
    "test_policy.py::test_sampler_has_the_right_distribution",
    "biased sampler: exponential noise instead of Gumbel",
)
def _():
    from fairpg_lite import PlackettLuce

    def sample(self, shape=(), generator=None):
        uniform = torch.rand((*shape, *self.scores.shape), generator=generator).double()
        return (uniform.log() - self.scores).argsort(-1)

    rewrite(PlackettLuce, "sample", lambda right: sample)


@caught_by(
    "test_policy.py::test_log_prob_equals_the_product_and_sums_to_one",
    "log-probability without the documents that are left",
)
def _():
    from fairpg_lite import policy

    def wrong(scores, rankings, mask):
        placed = scores.expand(rankings.shape).gather(-1, rankings)
        return placed - placed.logsumexp(-1, keepdim=True)

    swap(policy.log_steps, wrong)


@caught_by(
    "test_gradients.py::test_score_function_estimator_in_expectation",
    "gradient of log pi without the earlier draws",
)
def _():
    from fairpg_lite import policy

    def wrong(scores, rankings, mask):
        weight = scores.expand(rankings.shape).gather(-1, rankings).exp()
        return 1.0 - weight / weight.flip(-1).cumsum(-1).flip(-1)

    swap(policy.log_slopes, wrong)


@caught_by(
    "test_exact.py::test_written_out_gradient_equals_finite_differences",
    "the race forgets how moving one document moves the others",
)
def _():
    from fairpg_lite import exact

    swap(exact._loss_of_others, lambda race, own, nodes: torch.zeros_like(race.arrival))


@caught_by(
    "test_exact.py::test_exposure_is_the_weighted_sum_of_generating_functions",
    "exposure's gradient forgets the weights of the nodes",
)
def _():
    from fairpg_lite import exact

    right = exact.run_race

    def wrong(*args):
        seen = right(*args)
        return seen._replace(scale=torch.ones_like(seen.scale))

    swap(right, wrong)


@caught_by(
    "test_exact.py::test_position_probs_of_long_lists_sum_to_one",
    "a fixed step for position probabilities",
)
def _():
    from fairpg_lite import nodes

    def wrong(log_w, _, tolerance):
        return nodes.time_grid(log_w, -8.0 / math.log(tolerance), tolerance)

    swap(nodes.times, wrong)


@caught_by(
    "test_metrics.py::test_ndcg_agrees_with_scikit_learn", "NDCG's ideal ignores the cut-off"
)
def _():
    from fairpg_lite import ideal_dcg

    swap(ideal_dcg, lambda *args, k=None, **options: ideal_dcg(*args, **options))
