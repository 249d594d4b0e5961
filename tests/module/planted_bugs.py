"""Planted bugs: a small wrong function in the place of a right one, and the test that must see it.

Each is a slip somebody has made: the authors' code, the paper's appendix, or an early draft here.
test_planted_bugs.py runs each named test with its bug, in a process of its own.
"""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

DISPARITY = "module/test_disparity.py"
GRADIENTS = "module/test_gradients.py"
COMPILED = "module/test_compiled.py"
SWEEP = "module/test_sweep.py"
SHARED_DOCUMENTS = "module/test_shared_documents.py"


class Bug(NamedTuple):
    """How to plant it, and the test that must turn red, from the folder `tests/`."""

    plant: Callable[[], None]
    test: str


BUGS: dict[str, Bug] = {}


def caught_by(test: str, name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enters a function that plants the bug ``name``, which ``test`` must catch."""

    def enter(plant: Callable[[], None]) -> Callable[[], None]:
        BUGS[name] = Bug(plant, test)
        return plant

    return enter


def swap(right: object, wrong: object) -> None:
    """Put ``wrong`` wherever the package or the experiments refer to ``right``."""
    places = 0
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("fairpg_lite", "experiments"):
            for key, value in list(vars(module).items()):
                if value is right:
                    setattr(module, key, wrong)
                    places += 1
    assert places, f"{right} stands nowhere"


def swap_method(owner: type, name: str, make: Callable) -> None:
    """Put ``make(right)`` in the place of a method."""
    right = getattr(owner, name)
    wrong = make(right)
    setattr(
        owner, name, staticmethod(wrong) if isinstance(vars(owner)[name], staticmethod) else wrong
    )


# --- disparities ---


@caught_by(f"{DISPARITY}::test_group_by_hand", "reversed sign of D_group")
def _():
    from fairpg_lite.disparity import Hinge

    swap_method(Hinge, "forward", lambda right: lambda ctx, ratio, *rest: right(ctx, -ratio, *rest))


def one_sided_forward(ctx, ratio, merit, bar):
    """`Hinge.forward` whose slope counts who is ahead and forgets who is behind."""
    pairs = (merit.unsqueeze(-1) >= bar.unsqueeze(-2)).to(ratio.dtype)
    excess = ((ratio.unsqueeze(-1) - ratio.unsqueeze(-2)) * pairs).relu()
    ctx.save_for_backward(excess.sign().sum(-1))
    return excess.sum((-1, -2)), pairs.sum((-1, -2))


@caught_by(
    f"{GRADIENTS}::test_sampled_gradient_of_individual_disparity_is_the_papers_formula",
    "the hinge's slope counts one side only",
)
@caught_by(f"{COMPILED}::test_a_few_queries", "the same, seen by the compiled way")
def _():
    from fairpg_lite.disparity import Hinge

    swap_method(Hinge, "forward", lambda right: one_sided_forward)


@caught_by(f"{DISPARITY}::test_group_by_hand", "|G| factor: sum of exposures over mean merit")
def _():
    from fairpg_lite.disparity import group_ratios

    def wrong(exposure, merit, groups, mask=None):
        ratio, mean = group_ratios(exposure, merit, groups, mask)
        index = torch.unique(groups, return_inverse=True)[1]
        return ratio * torch.zeros_like(ratio).scatter_add(-1, index, exposure * 0 + 1), mean

    swap(group_ratios, wrong)


@caught_by(f"{DISPARITY}::test_masked_members_are_not_paid", "missing mask in D_group")
def _():
    from fairpg_lite.disparity import group_ratios

    swap(group_ratios, lambda exposure, merit, groups, mask: group_ratios(exposure, merit, groups))


@caught_by(f"{DISPARITY}::test_padding_is_invisible", "missing mask in D_ind")
def _():
    from fairpg_lite import disparity

    swap(disparity.checked_merit, lambda where, exposure, merit, mask: merit)


@caught_by(f"{DISPARITY}::test_individual_against_loop", "H without M_j > 0")
def _():
    from fairpg_lite.disparity import Hinge

    swap_method(Hinge, "forward", lambda right: lambda ctx, ratio, m, bar: right(ctx, ratio, m, m))


@caught_by(f"{DISPARITY}::test_individual_by_hand", "pairs (i, i) not counted")
def _():
    from fairpg_lite.disparity import Hinge

    def make(right):
        def forward(ctx, ratio, merit, bar):
            value, count = right(ctx, ratio, merit, bar)
            return value, count - (merit > 0).sum(-1)

        return forward

    swap_method(Hinge, "forward", make)


@caught_by(
    f"{DISPARITY}::test_two_sided_is_the_absolute_difference_of_the_ratios",
    "the two-sided gap counts one direction",
)
def _():
    from fairpg_lite import group_disparity, group_gap

    swap(group_gap, group_disparity)


# --- policies and their gradients ---


@caught_by(f"{GRADIENTS}::test_expect_written_out", "missing baseline")
def _():
    from fairpg_lite import PlackettLuce

    def make(right):
        return lambda self, values, rankings, baseline="mean": right(self, values, rankings, None)

    swap_method(PlackettLuce, "expect", make)


@caught_by(
    f"{GRADIENTS}::test_leave_one_out_is_a_multiple_of_the_mean_baseline",
    "leave-one-out without its factor",
)
def _():
    from fairpg_lite import PlackettLuce

    def make(right):
        return lambda self, values, rankings, baseline="mean": right(
            self, values, rankings, "mean" if baseline == "loo" else baseline
        )

    swap_method(PlackettLuce, "expect", make)


@caught_by(
    f"{GRADIENTS}::test_score_function_estimator_in_expectation",
    "gradient summed over S, not averaged",
)
def _():
    from fairpg_lite import PlackettLuce

    def make(right):
        def expect(self, values, rankings, baseline="mean"):
            mean = right(self, values, rankings, baseline)
            return mean.detach() + len(rankings) * (mean - mean.detach())

        return expect

    swap_method(PlackettLuce, "expect", make)


@caught_by(
    "module/test_policy.py::test_sampler_has_the_right_distribution",
    "biased sampler: exponential noise instead of Gumbel",
)
def _():
    from fairpg_lite import PlackettLuce

    def sample(self, shape=(), generator=None):
        uniform = torch.rand((*shape, *self.scores.shape), generator=generator).double()
        return (uniform.log() - self.scores).argsort(-1)

    swap_method(PlackettLuce, "sample", lambda right: sample)


@caught_by(
    "module/test_policy.py::test_log_prob_equals_the_product_and_sums_to_one",
    "log-probability without the documents that are left",
)
def _():
    from fairpg_lite import policy

    def wrong(scores, rankings, mask):
        placed = scores.expand(rankings.shape).gather(-1, rankings)
        return placed - placed.logsumexp(-1, keepdim=True)

    swap(policy.log_steps, wrong)


@caught_by(
    f"{GRADIENTS}::test_score_function_estimator_in_expectation",
    "gradient of log pi without the earlier draws",
)
def _():
    from fairpg_lite import policy

    def wrong(scores, rankings, mask):
        weight = scores.expand(rankings.shape).gather(-1, rankings).exp()
        return 1.0 - weight / weight.flip(-1).cumsum(-1).flip(-1)

    swap(policy.log_slopes, wrong)


# --- exposure and metrics ---


@caught_by("module/test_metrics.py::test_the_log_is_base_two", "wrong log base")
def _():
    from fairpg_lite import position_bias

    swap(position_bias, lambda *args, **options: position_bias(*args, **options) / math.log(2.0))


@caught_by(
    "module/test_exact.py::test_ranking_exposure_pays_the_position", "r and its inverse swapped"
)
def _():
    from fairpg_lite import ranking_exposure

    swap(ranking_exposure, lambda rankings, *rest: ranking_exposure(rankings.argsort(-1), *rest))


@caught_by(
    "module/test_exact.py::test_written_out_gradient_equals_finite_differences",
    "the race forgets how moving one document moves the others",
)
def _():
    from fairpg_lite import exact

    swap(exact._loss_of_others, lambda race, own, nodes: torch.zeros_like(race.arrival))


@caught_by(
    "module/test_exact.py::test_exposure_is_the_weighted_sum_of_generating_functions",
    "exposure's gradient forgets the weights of the nodes",
)
def _():
    from fairpg_lite import exact

    right = exact.run_race

    def wrong(*args):
        race = right(*args)
        return race._replace(scale=torch.ones_like(race.scale))

    swap(right, wrong)


@caught_by(
    "module/test_exact.py::test_position_probs_of_long_lists_sum_to_one",
    "a fixed step for position probabilities",
)
def _():
    from fairpg_lite import nodes

    def wrong(log_w, _, tolerance):
        return nodes.time_grid(log_w, -8.0 / math.log(tolerance), tolerance)

    swap(nodes.times, wrong)


@caught_by(
    "module/test_metrics.py::test_ndcg_agrees_with_scikit_learn",
    "NDCG's ideal ignores the cut-off",
)
def _():
    from fairpg_lite.metrics import ideal_dcg

    swap(ideal_dcg, lambda *args, k=None, **options: ideal_dcg(*args, **options))


@caught_by(
    "module/test_reward_to_go.py::test_unbiased_over_all_pairs_of_rankings",
    "reward-to-go forgets the document of the draw itself",
)
def _():
    from fairpg_lite import reward_to_go

    right = reward_to_go._sum_from_here_on
    swap(right, lambda values: right(values) - values)


@caught_by(
    "module/test_reward_to_go.py::test_unbiased_over_all_pairs_of_rankings",
    "a list of k places without the draws of those that are not shown",
)
def _():
    from fairpg_lite import policy

    def of_the_shown_only(masked_scores, places):
        placed = masked_scores.expand(*places.shape[:-1], masked_scores.shape[-1]).gather(
            -1, places
        )
        return placed - placed.flip(-1).logcumsumexp(-1).flip(-1)

    swap(policy.log_first_steps, of_the_shown_only)


@caught_by(
    "module/test_first_places.py::test_against_subsets",
    "the race of the first places ends when k are expected, not certain",
)
def _():
    from fairpg_lite import nodes

    swap(nodes.enough_arrivals, lambda places, tolerance: float(places))


@caught_by(
    "module/test_long_lists.py::test_a_long_discount_is_a_short_positive_sum_of_powers",
    "nobody looks at the error of a long sum",
)
def _():
    from fairpg_lite import nodes

    swap(nodes._largest_error, lambda values, nodes, coefficients: 0.0)


# --- compiled loops, which run as Python here ---


@caught_by(f"{COMPILED}::test_reward_to_go", "all draws answer for the whole reward, compiled")
def _():
    from fairpg_lite.compiled.kernels import sampled

    right = sampled.rewards_to_go

    def whole_rewards(*given):
        weights = right(*given)
        return np.repeat(weights[:, :1], weights.shape[1], axis=1)

    swap(right, whole_rewards)


@caught_by(f"{COMPILED}::test_a_few_queries", "the indicator forgotten, compiled")
def _():
    from fairpg_lite.compiled.kernels import objective

    def wrong(exposure, merit, mean, slope):
        with_merit = np.where(merit > 0, merit, np.inf)
        ratio = exposure / with_merit
        pairs = mean[:, None] >= np.where(merit > 0, mean, np.inf)
        pairs &= merit[:, None] > 0
        slope += (pairs.sum(1) - pairs.sum(0)) / with_merit
        return (pairs * (ratio[:, None] - ratio)).sum(), pairs.sum()

    swap(objective.hinge, wrong)


@caught_by(f"{COMPILED}::test_a_few_queries", "the baseline forgotten, compiled")
def _():
    from fairpg_lite.compiled.kernels import sampled

    def wrong(rewards, baseline):
        rewards /= len(rewards)

    swap(sampled.subtract_baseline, wrong)


@caught_by(f"{COMPILED}::test_a_few_queries", "a document overtakes itself, compiled")
def _():
    from fairpg_lite.compiled.kernels import exact

    def wrong(pull, z, run):
        pulled = run.arrival * pull
        everyone = (run.inverse * pulled[:, None]).sum(-1, keepdims=True)
        lead = ((1.0 - z)[:, None] * run.scale[..., None] * everyone * run.inverse).real.sum(1)
        return ((1.0 - run.y) * pulled * run.density - lead * run.arrival).sum(0)

    swap(exact.race_slope, wrong)


@caught_by(f"{COMPILED}::test_a_few_queries", "the sum over the batch, compiled")
def _():
    from fairpg_lite.compiled.kernels import batches

    def wrong(*args):
        *before, _, terms, grad = args
        return batches.grade_batch(*before, -1.0, terms, grad)

    swap(batches.run_batches, batches.batch_loop(batches.score_batch, wrong))


@caught_by(
    f"{COMPILED}::test_a_large_batch_is_shared_out_to_threads", "a part of a large batch forgotten"
)
def _():
    from fairpg_lite.compiled import threads

    right = threads.grade_batch

    def wrong(model, queries, row_starts, *rest):
        total = right(model, queries, row_starts, *rest)
        if row_starts[0] > 0:  # not the first part
            rest[-1][:] = 0.0
        return total

    swap(right, wrong)


# --- what the paper compares with ---


@caught_by(
    "module/test_post_processing.py::test_the_rows_are_the_disparities",
    "|G| factor in the programme's constraint",
)
def _():
    from fairpg_lite import post_processing

    right = post_processing._ratios

    def wrong(relevance, index):
        per_merit, mean_merit = right(relevance, index)
        return per_merit * torch.bincount(index).unsqueeze(-1), mean_merit

    swap(right, wrong)


@caught_by(
    "module/test_post_processing.py::test_the_rows_are_the_disparities",
    "reversed inequality in the programme (as the paper prints it)",
)
def _():
    from fairpg_lite.post_processing import FairnessRows, group_rows

    swap(group_rows, lambda *args, **options: FairnessRows(-group_rows(*args, **options).rows))


@caught_by(
    "experiments/test_baselines_deltr.py::test_the_loss_by_hand_in_a_padded_batch",
    "DELTR's one-sided gap on the wrong side (as in the published notebooks)",
)
def _():
    from experiments import learners

    right = learners.top_exposure_gap
    swap(right, lambda *args, **options: -right(*args, **options))


@caught_by(
    "experiments/test_experiments.py::test_means_and_intervals_are_numpys_and_scipys",
    "an interval with as many degrees of freedom as seeds",
)
def _():
    from scipy.stats import t

    import experiments.summary

    class MoreFreedom:
        @staticmethod
        def ppf(level, degrees):
            return t.ppf(level, degrees + 1)

    swap(experiments.summary.t, MoreFreedom)


# --- files ---


@caught_by(
    f"{SWEEP}::test_killed_twenty_times_and_resumed",
    "a cell is written in place, not beside it and renamed",
)
def _():
    from fairpg_lite._files import write_whole

    def wrong(path, content):
        content = content.encode() if isinstance(content, str) else content
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            file.write(content[:100])
            file.flush()
            file.write(content[100:])
        return Path(path)

    import fairpg_lite.sweeps  # noqa: F401 - so that all who write refer to it already

    swap(write_whole, wrong)


@caught_by(
    f"{SWEEP}::test_two_sweeps_on_one_directory",
    "two sweeps on one directory share a temporary file",
)
def _():
    from fairpg_lite._files import temporary_path

    swap(temporary_path, lambda target: target.with_name(f".{target.name}.part"))


@caught_by(
    f"{SWEEP}::test_a_file_cut_off_anywhere_counts_as_missing",
    "resuming trusts a file because it is there",
)
def _():
    from fairpg_lite.sweeps.records import read_record

    def wrong(path):
        return read_record(path) or ({"status": "done"} if path.exists() else None)

    swap(read_record, wrong)


@caught_by(
    "module/test_columns.py::test_a_weight_of_two_is_a_query_twice",
    "weights of queries are forgotten in the update",
)
def _():
    from fairpg_lite.training.run import Run

    swap_method(
        Run,
        "_query_weights",
        lambda right: lambda self, batch: torch.ones_like(batch.relevance[:, 0]),
    )


@caught_by(
    "module/test_columns.py::test_a_column_is_merit_while_relevance_is_gain",
    "a column of merit is ignored",
)
def _():
    from fairpg_lite.relevance import merit_of

    swap(merit_of, lambda relevance, merit="identity", columns=None: relevance)


@caught_by(
    "module/test_pooled.py::test_what_is_remembered_is_what_was_seen_last",
    "running sums remember a batch in the rows of the first queries",
)
def _():
    from fairpg_lite.pooling import RunningPool

    swap_method(
        RunningPool,
        "_rows",
        lambda right: lambda self, mask, queries: right(self, mask, queries.flip(0)),
    )


@caught_by(
    "module/test_pooled.py::test_intervals_of_single_items_cover_what_other_queries_give",
    "draws of a pool of items are taken as they are",
)
def _():
    from fairpg_lite.pooling import PooledValue

    swap_method(PooledValue, "_placed", lambda right: lambda self, draws, value: draws)


@caught_by(
    "module/test_cli.py::test_a_cut_off_is_trained_and_judged_by",
    "--k cuts nothing",
)
def _():
    from fairpg_lite.cli.options import cut_off

    swap(cut_off, lambda bias, k: bias)


@caught_by(
    f"{SWEEP}::test_killed_while_collecting",
    "collecting removes the files before the table is there",
)
def _():
    from fairpg_lite.sweeps.tables import write_table

    def wrong(out, *args, **options):
        for path in out.rglob("lam=*_seed=*.json"):
            path.unlink()
        return write_table(out, *args, **options)

    swap(write_table, wrong)


@caught_by(
    f"{SWEEP}::test_two_processes_give_the_numbers_of_one",
    "a cell's streams depend on what ran before it in the process",
)
def _():
    from fairpg_lite.sweeps.computing import same_world

    @contextmanager
    def wrong(seed: int, dtype: torch.dtype) -> Iterator[None]:
        earlier = int(torch.randint(10**6, ()))
        with same_world(earlier, dtype):
            yield

    swap(same_world, wrong)


@caught_by(
    "module/test_sweep_cluster.py"
    "::test_workers_get_the_experiment_with_the_job_and_an_older_package_is_refused",
    "a worker's versions are not compared",
)
def _():
    from fairpg_lite.sweeps.cluster import Cluster

    swap_method(Cluster, "demand_versions", lambda right: lambda self, worker, found: None)


@caught_by(
    "module/test_models.py::test_a_changed_digit_is_noticed",
    "the checksum of a model's weights is not verified",
)
def _():
    from fairpg_lite.models import model_file

    swap(model_file._digest, lambda weights: "0" * 64)


@caught_by(
    "module/test_cli.py::test_a_model_is_replaced_with_overwrite_only",
    "fit replaces a model without --overwrite",
)
def _():
    from fairpg_lite.cli import fitting

    swap(fitting._holds_model_of, lambda out, identity: False)


# --- audits ---


@caught_by(
    "module/test_audit.py::test_a_run_that_stops_early_is_not_completed",
    "documents that were not shown get the exposure of the places behind",
)
def _():
    from fairpg_lite.auditing import ShownLists

    def completed(right):
        def wrong(self, position_bias=None):
            self.position_of = 1 + self._completed().argsort(-1)
            return right(self, position_bias)

        return wrong

    swap_method(ShownLists, "exposure_by_list", completed)


@caught_by(
    "module/test_audit_bracket.py"
    "::test_the_tangent_of_d_group_is_sign_of_one_half_and_size_of_the_other",
    "sign and size of the lower end come from the same lists",
)
def _():
    from fairpg_lite.auditing import bracket

    right = bracket._halves

    def wrong(exposure_by_list, splits):
        first, _ = right(exposure_by_list, splits)
        return first, first.clone()

    swap(right, wrong)


@caught_by(
    "module/test_audit_page.py::test_names_are_text",
    "names of groups are put into the page as they are",
)
def _():
    from fairpg_lite.auditing import page

    swap(page.escape, lambda text: text)


# --- promises and lists ---


@caught_by(
    "module/test_betting.py::test_the_capital_is_that_of_the_game",
    "a stake sees the number that it is laid on",
)
def _():
    from fairpg_lite import betting

    def wrong(shares, alpha):
        return torch.cat([right(shares, alpha)[..., 1:], right(shares, alpha)[..., -1:]], dim=-1)

    right = betting._stakes
    swap(right, wrong)


@caught_by(
    "module/test_certificate.py::test_the_path_ends_at_the_first_that_does_not_pass",
    "policies behind one that failed are certified",
)
def _():
    from fairpg_lite.training.certificate import Certificate

    def make(right):
        def init(self, *args, **fields):
            fields["n_certified"] = sum(bound <= fields["delta"] for bound in fields["bounds"])
            right(self, *args, **fields)

        return init

    swap_method(Certificate, "__init__", make)


@caught_by(
    "module/test_fair_layer.py::test_the_layers_are_what_their_names_say",
    "raw scores go through the programme",
)
def _():
    from fairpg_lite.training.fair_layer import Calibration

    swap_method(Calibration, "__call__", lambda right: lambda self, scores: scores)


@caught_by(
    "module/test_estimator.py::test_lists_are_those_of_the_policy_that_was_chosen",
    "rank takes every policy for Plackett-Luce",
)
def _():
    from fairpg_lite.training import estimator

    swap(
        estimator.first_places,
        lambda policy, k, shape, generator: policy.policies[0].sample(shape, generator, k=k),
    )


@caught_by(
    f"{SHARED_DOCUMENTS}::test_the_widening_is_that_of_full_matrices",
    "what a query shares with itself counted once for each of its documents",
)
def _() -> None:
    from fairpg_lite.resampling import Membership

    def make(right: Callable) -> Callable:
        def widening(self: Membership, values: torch.Tensor) -> float:
            if not self.is_shared:
                return right(self, values)
            deviations = values - values.mean()
            by_item = torch.mv(self.occurrences.t(), deviations)
            return float((by_item.square().sum() / deviations.square().sum()).sqrt())

        return widening

    swap_method(Membership, "widening", make)
