"""Planted bugs: (name, file, the right text, the wrong text, the test that must turn red).

Each is a slip somebody has made: the authors' code, the paper's appendix, or an early draft here.
"""

MUTANTS = [
    (
        "reversed sign of D_group",
        "disparity.py",
        "excess = Hinge.apply(ratio, pairs.to(ratio.dtype))",
        "excess = Hinge.apply(-ratio, pairs.to(ratio.dtype))",
        "test_disparity.py::test_group_by_hand",
    ),
    (
        "the hinge's slope counts one side only",
        "disparity.py",
        "ahead.sum(-1) - ahead.sum(-2)",
        "ahead.sum(-1)",
        "test_gradients.py::test_sampled_gradient_of_individual_disparity_is_the_papers_formula",
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
        "bar.detach().unsqueeze(-2), out=pairs)",
        "merit.detach().unsqueeze(-2), out=pairs)",
        "test_disparity.py::test_individual_against_loop",
    ),
    (
        "pairs (i, i) not counted",
        "disparity.py",
        "pairs.sum((-1, -2)).clamp(min=1.0)",
        "(pairs.sum((-1, -2)) - (merit > 0).sum(-1)).clamp(min=1.0)",
        "test_disparity.py::test_individual_by_hand",
    ),
    (
        "missing baseline",
        "policy.py",
        "advantage = advantage - mean.detach()",
        "advantage = advantage * 1.0",
        "test_gradients.py::test_expect_written_out",
    ),
    (
        "leave-one-out without its factor",
        "policy.py",
        "advantage * (samples / (samples - 1))",
        "advantage * 1.0",
        "test_gradients.py::test_leave_one_out_is_a_multiple_of_the_mean_baseline",
    ),
    (
        "gradient summed over S, not averaged",
        "likelihood.py",
        "_to_documents(slopes, rankings).mean(0)",
        "_to_documents(slopes, rankings).sum(0)",
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
        "biased sampler: exponential noise instead of Gumbel",
        "policy.py",
        "gumbel = keys.log_().neg_().log_()",
        "gumbel = keys.log_()",
        "test_policy.py::test_sampler_has_the_right_distribution",
    ),
    (
        "log-probability without the documents that are left",
        "likelihood.py",
        "remaining = _suffix(torch.cumsum, placed.exp()).log()",
        "remaining = placed.logsumexp(-1, keepdim=True)",
        "test_policy.py::test_log_prob_equals_the_product_and_sums_to_one",
    ),
    (
        "gradient of log pi without the earlier draws",
        "likelihood.py",
        "picked = weight * _suffix(torch.cumsum, weight).reciprocal().cumsum(-1)",
        "picked = weight * _suffix(torch.cumsum, weight).reciprocal()",
        "test_policy.py::test_log_prob_gradient_by_hand",
    ),
    (
        "the race forgets how moving one document moves the others",
        "race.py",
        "return torch.matmul(1.0 - nodes, others).view_as(race.arrival).mul_(race.arrival)",
        "return torch.zeros_like(race.arrival)",
        "test_exact.py::test_written_out_gradient_equals_finite_differences",
    ),
    (
        "exposure's gradient forgets what the positions are worth",
        "race_exposure.py",
        "own = (race.inverse * (race.arrival * pull).unsqueeze(1)).mul_(worth)",
        "own = race.inverse * (race.arrival * pull).unsqueeze(1)",
        "test_exact.py::test_exposure_is_the_weighted_sum_of_generating_functions",
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
    (
        "|G| factor in the programme's constraint",
        "baselines/constraints.py",
        "per_merit, mean = ratio.T, means[0]",
        "per_merit, mean = ratio.T * torch.bincount(index).unsqueeze(-1), means[0]",
        "test_baselines_lp.py::test_the_rows_are_the_disparities",
    ),
    (
        "reversed inequality in the programme (as the paper prints it)",
        "baselines/constraints.py",
        "(slack, per_merit[high] - per_merit[low])",
        "(slack, per_merit[low] - per_merit[high])",
        "test_baselines_lp.py::test_the_rows_are_the_disparities",
    ),
    (
        "DELTR's one-sided gap on the wrong side (as in the published notebooks)",
        "baselines/deltr.py",
        '"one-sided": lambda behind: behind.relu(),',
        '"one-sided": lambda behind: (-behind).relu(),',
        "test_baselines_deltr.py::test_the_loss_by_hand_in_a_padded_batch",
    ),
    (
        "a cell is written in place, not beside it and renamed",
        "_cell_files.py",
        """        temporary = _temporary(path, text)
        try:
            os.replace(temporary, path)
            return
""",
        """        temporary = path
        try:
            with open(path, "w") as file:
                file.write(text[:100])
                file.flush()
                file.write(text[100:])
            return
""",
        "test_sweep.py::test_killed_twenty_times_and_resumed",
    ),
    (
        "resuming trusts a file because it is there",
        "_cell_files.py",
        "    except (FileNotFoundError, NotADirectoryError, ValueError):\n        return None",
        """    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        return {"format": FORMAT, "status": "done", "result": {}, "method": "", "config": {},
                "lam": 0.0, "seed": 0, "seconds": 0.0}""",
        "test_sweep.py::test_a_file_cut_off_anywhere_counts_as_missing",
    ),
    (
        "a cell's streams depend on what ran before it in the process",
        "_compute.py",
        "torch.manual_seed(seed)",
        "torch.rand(seed)",
        "test_sweep.py::test_two_processes_give_the_numbers_of_one",
    ),
    (
        "two sweeps on one directory share a temporary file",
        "_cell_files.py",
        """        with open(temporary, "x", encoding="utf-8") as file:""",
        """        temporary = path.with_name(f".{path.name}.0.tmp")
        with open(temporary, "w", encoding="utf-8") as file:""",
        "test_sweep.py::test_two_writers_of_one_cell_have_a_file_each",
    ),
    (
        "the checksum of a model's weights is not verified",
        "models.py",
        "if found[-1] == expected:",
        "if found[-1]:",
        "test_models.py::test_a_flipped_bit_is_noticed",
    ),
    (
        "fit replaces a model without --force",
        "cli/_common.py",
        "if found and not force:",
        "if False:",
        "test_cli.py::test_a_model_is_replaced_with_force_only",
    ),
    (
        "D_group counts one direction even where both were asked for",
        "disparity.py",
        "if not two_sided:",
        "if True:",
        "test_disparity.py::test_two_sided_is_the_absolute_difference_of_the_ratios",
    ),
    (
        "an interval with as many degrees of freedom as seeds",
        "experiments/summary.py",
        "t.ppf(0.975, n - 1)",
        "t.ppf(0.975, n)",
        "test_experiments.py::test_means_and_intervals_are_numpys_and_scipys",
    ),
]
