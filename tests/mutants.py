"""Planted bugs: (name, file, the right text, the wrong text, the test that must turn red).

Each is a slip somebody has made: the authors' code, the paper's appendix, or an early draft here.
"""

MUTANTS = [
    (
        "reversed sign of D_group",
        "disparity.py",
        "excess = torch.where(pairs, (ratio.unsqueeze(-1) - ratio.unsqueeze(-2)).relu(), 0.0)",
        "excess = torch.where(pairs, (ratio.unsqueeze(-2) - ratio.unsqueeze(-1)).relu(), 0.0)",
        "test_disparity.py::test_group_by_hand",
    ),
    (
        "|G| factor: sum of exposures over mean merit",
        "disparity.py",
        "paid / torch.where(total_merit > 0, total_merit, 1.0)",
        "paid / torch.where(total_merit > 0, total_merit / size, 1.0)",
        "test_disparity.py::test_group_by_hand",
    ),
    (
        "missing mask in D_group",
        "disparity.py",
        "paid = empty.scatter_add(-1, index, exposure * real)",
        "paid = empty.scatter_add(-1, index, exposure)",
        "test_mutants.py::test_masked_members_are_not_paid",
    ),
    (
        "missing mask in D_ind",
        "disparity.py",
        "return merit if mask is None else torch.where(mask, merit, 0.0)",
        "return merit",
        "test_disparity.py::test_padding_is_invisible",
    ),
    (
        "H without M_j > 0",
        "disparity.py",
        ">= merit.unsqueeze(-2)) & deserving.unsqueeze(-2)",
        ">= merit.unsqueeze(-2))",
        "test_disparity.py::test_individual_against_loop",
    ),
    (
        "pairs (i, i) not counted",
        "disparity.py",
        "count = pairs.sum((-1, -2)).clamp(min=1)",
        "count = (pairs.sum((-1, -2)) - deserving.sum(-1)).clamp(min=1)",
        "test_disparity.py::test_individual_by_hand",
    ),
    (
        "missing baseline",
        "policy.py",
        'if baseline == "mean":\n            advantage = values - mean',
        'if baseline == "mean":\n            advantage = values',
        "test_gradients.py::test_expect_written_out",
    ),
    (
        "leave-one-out without its factor",
        "policy.py",
        "(values - mean) * (samples / (samples - 1))",
        "(values - mean)",
        "test_gradients.py::test_leave_one_out_is_a_multiple_of_the_mean_baseline",
    ),
    (
        "gradient summed over S, not averaged",
        "policy.py",
        "(advantage.detach() * lever).mean(0)",
        "(advantage.detach() * lever).sum(0)",
        "test_gradients.py::test_score_function_estimator_in_expectation",
    ),
    (
        "wrong log base",
        "exposure.py",
        "bias = 1.0 / torch.log2(1.0 + j)",
        "bias = 1.0 / torch.log(1.0 + j)",
        "test_metrics.py::test_the_log_is_base_two",
    ),
    (
        "r and its inverse swapped",
        "exposure.py",
        "exposure.scatter(-1, rankings, position_bias[:n].expand(rankings.shape))",
        "position_bias[:n].expand(rankings.shape).gather(-1, rankings)",
        "test_exact.py::test_ranking_exposure_pays_the_position",
    ),
    (
        "biased sampler: Gaussian noise instead of Gumbel",
        "policy.py",
        "keys.exponential_(generator=generator).log_().neg_()",
        "keys.normal_(generator=generator)",
        "test_policy.py::test_sampler_has_the_right_distribution",
    ),
    (
        "log-probability without the documents that are left",
        "policy.py",
        "remaining = placed.flip(-1).logcumsumexp(-1).flip(-1)",
        "remaining = placed.logsumexp(-1, keepdim=True)",
        "test_policy.py::test_log_prob_equals_the_product_and_sums_to_one",
    ),
    (
        "the race forgets how moving one document moves the others",
        "race.py",
        "both = direct - indirect",
        "both = direct",
        "test_exact.py::test_written_out_gradient_equals_finite_differences",
    ),
    (
        "a fixed step for position probabilities",
        "exposure.py",
        "if nodes.is_complex():",
        "if False:",
        "test_exact.py::test_position_probs_of_long_lists_sum_to_one",
    ),
    (
        "NDCG's ideal ignores the cut-off",
        "metrics.py",
        "    if k is not None:\n        bias = torch.where(torch.arange(n",
        "    if False:\n        bias = torch.where(torch.arange(n",
        "test_metrics.py::test_ndcg_agrees_with_scikit_learn",
    ),
]
