"""Planted bugs: (name, file, the right text, the wrong text, the test that must turn red).

Each is a slip somebody has made: the authors' code, the paper's appendix, or an early draft here.
"""

MUTANTS = [
    (
        "the indicator forgotten, compiled",
        "compiled_kernels.py",
        "active = pair if ratio[i] > ratio[j] else 0.0",
        "active = pair",
        "test_compiled.py::test_a_few_queries",
    ),
    (
        "the baseline forgotten, compiled",
        "compiled_kernels.py",
        "reward -= reward.sum() / samples",
        "reward -= 0.0",
        "test_compiled.py::test_a_few_queries",
    ),
    (
        "a document overtakes itself, compiled",
        "compiled_kernels.py",
        "others = everyone - inverse[q, m, j] * own[j]",
        "others = everyone",
        "test_compiled.py::test_a_few_queries",
    ),
    (
        "the sum over the batch, compiled",
        "compiled_epoch.py",
        "share = drawn + draws.size, -1.0 / count",
        "share = drawn + draws.size, -1.0",
        "test_compiled.py::test_a_few_queries",
    ),
    (
        "a part of a large batch forgotten",
        "compiled_epoch.py",
        "grad += grads.sum(0)",
        "grad += grads[0]",
        "test_compiled.py::test_a_large_batch_is_shared_out_to_threads",
    ),
    (
        "the other way's hinge counts one side only",
        "disparity.py",
        "slope -= ahead.sum(-2)",
        "slope -= 0.0",
        "test_compiled.py::test_a_few_queries",
    ),
    (
        "|G| factor in the programme's constraint",
        "baselines.py",
        "per_merit, mean = ratio.T, means[0]",
        "per_merit, mean = ratio.T * torch.bincount(index).unsqueeze(-1), means[0]",
        "test_baselines_lp.py::test_the_rows_are_the_disparities",
    ),
    (
        "reversed inequality in the programme (as the paper prints it)",
        "baselines.py",
        "        per_merit[high] - per_merit[low]",
        "        per_merit[low] - per_merit[high]",
        "test_baselines_lp.py::test_the_rows_are_the_disparities",
    ),
    (
        "DELTR's one-sided gap on the wrong side (as in the published notebooks)",
        "../book/experiments/learners.py",
        '"one-sided": lambda behind: behind.relu(),',
        '"one-sided": lambda behind: (-behind).relu(),',
        "test_baselines_deltr.py::test_the_loss_by_hand_in_a_padded_batch",
    ),
    (
        "a cell is written in place, not beside it and renamed",
        "_files.py",
        "        os.replace(temporary, path)",
        """        content = temporary.read_bytes()
        with open(path, "wb") as file:
            file.write(content[:100])
            file.flush()
            file.write(content[100:])""",
        "test_sweep.py::test_killed_twenty_times_and_resumed",
    ),
    (
        "resuming trusts a file because it is there",
        "_records.py",
        "    except (FileNotFoundError, NotADirectoryError, ValueError, LookupError, TypeError):\n"
        "        return None",
        """    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, LookupError, TypeError):
        return {"format": FORMAT, "status": "done", "result": {}, "method": "", "config": {},
                "lam": 0.0, "seed": 0, "seconds": 0.0}""",
        "test_sweep.py::test_a_file_cut_off_anywhere_counts_as_missing",
    ),
    (
        "a cell's streams depend on what ran before it in the process",
        "sweep.py",
        "torch.manual_seed(seed)",
        "torch.rand(seed)",
        "test_sweep.py::test_two_processes_give_the_numbers_of_one",
    ),
    (
        "two sweeps on one directory share a temporary file",
        "_files.py",
        "{os.getpid()}-{secrets.token_hex(4)}",
        "1-0",
        "test_sweep.py::test_two_sweeps_on_one_directory",
    ),
    (
        "a worker's versions are not compared",
        "_cluster.py",
        "if {*theirs} != {ours} else []",
        "if not theirs else []",
        "test_sweep_cluster.py::test_workers_get_the_experiment_with_the_job_and_an_older_package_is_refused",
    ),
    (
        "collecting removes the files before the table is there",
        "_records.py",
        "        write_table(out, list((rows | done).values()), **about)\n",
        "        [path.unlink() for path in found]\n"
        "        write_table(out, list((rows | done).values()), **about)\n",
        "test_sweep.py::test_killed_while_collecting",
    ),
    (
        "the checksum of a model's weights is not verified",
        "models.py",
        'if _digest(weights) != meta["sha256"]:',
        "if not _digest(weights):",
        "test_models.py::test_a_changed_digit_is_noticed",
    ),
    (
        "fit replaces a model without --force",
        "cli/commands.py",
        '.get("run") == run:',
        '.get("run"):',
        "test_cli.py::test_a_model_is_replaced_with_force_only",
    ),
    (
        "an interval with as many degrees of freedom as seeds",
        "../book/experiments/summary.py",
        "t.ppf(0.975, n - 1)",
        "t.ppf(0.975, n)",
        "test_experiments.py::test_means_and_intervals_are_numpys_and_scipys",
    ),
]
