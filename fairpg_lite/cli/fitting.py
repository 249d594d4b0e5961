"""`fairpg-lite fit`."""

import argparse
import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import nn

from fairpg_lite._files import probe
from fairpg_lite.cli import options
from fairpg_lite.cli.output import INTERRUPTED, UsageError, say, shows_progress
from fairpg_lite.cli.reading import read_parts
from fairpg_lite.data import RankingDataset
from fairpg_lite.models import Preparation, load_model, save_model
from fairpg_lite.scorers import new_scorer
from fairpg_lite.training import History, TrainConfig, fit, fit_to_budget, objective_on

HELP = """\
Train a policy on LETOR files, and leave a model directory.

The policy maximises utility less lambda times disparity (Fair-PG-Rank). The directory gets
model.json, which says in plain text how the model was made and holds the weights. A killed
training continues when the same command is given again (with --budget it starts afresh).

examples:
  fairpg-lite fit train.txt --valid valid.txt --group-feature 5 --lam 1 --out model/
  fairpg-lite fit train.txt --disparity d_ind --lam 10 --method exact --out model/
  fairpg-lite fit train.txt --valid valid.txt --group-feature 5 --budget 0.01 --out model/"""
CHECKPOINT = "checkpoint.pt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    options.add_training_data(parser)
    options.add_results(parser)
    options.add_scorer(parser)
    for name in options.SETTINGS:
        if name != "lam":
            options.add_setting(parser, name)
    options.add_position_bias(parser, "log2")
    options.add_cut_off(parser, "none")
    price = parser.add_mutually_exclusive_group()
    options.add_setting(price, "lam")
    price.add_argument(
        "--budget",
        type=float,
        metavar="X",
        help="find the least lambda with no more disparity on --valid or TRAIN",
    )
    parser.add_argument(
        "--test",
        type=options.file_name,
        metavar="X",
        help="LETOR file whose disparity a --budget reports, too",
    )


def run(args: argparse.Namespace) -> int | None:
    """Train, or find that this very training is done."""
    config = options.settings_of(args)
    if args.budget is None and args.test is not None:
        raise UsageError("--test reports on a --budget; judge a model by fairpg-lite evaluate.")
    is_charged = args.lam > 0 or args.budget is not None
    prepare, data = read_parts(args, ("valid", "test"), is_charged)
    train = data["train"]
    longest = options.longest_list(data.values())
    bias = options.cut_bias_of(args.position_bias, args.k, longest)
    config = replace(config, position_bias=bias)
    scorer = new_scorer(train.n_features, args.hidden, seed=args.seed, dtype=train.features.dtype)
    notes: dict[str, Any] = {part: str(dataset) for part, dataset in data.items()}
    notes["run"] = _identity(config, prepare, scorer, args.budget, data)
    out = Path(args.out)
    if not args.overwrite and _holds_model_of(out, notes["run"]):
        (out / CHECKPOINT).unlink(missing_ok=True)
        say(args, f"{out} holds the model of this very command; there is nothing to do.")
        return None
    if args.overwrite:
        (out / CHECKPOINT).unlink(missing_ok=True)
    probe(out)  # before hours are spent
    try:
        if args.budget is None:
            history = fit(
                scorer,
                train,
                config,
                data.get("valid"),
                progress=shows_progress(args),
                checkpoint=out / CHECKPOINT,
            )
            over_budget = ""
        else:
            config, history, over_budget = _fit_to_budget(args, scorer, config, data, notes)
    except KeyboardInterrupt:
        if args.budget is None:
            say(args, "interrupted; the same command continues after the last finished epoch.")
        else:
            say(args, "interrupted; the same command starts afresh.")
        return INTERRUPTED
    save_model(
        scorer,
        out,
        prepare=prepare,
        config=config,
        history=history,
        notes=notes,
        overwrite=args.overwrite,
    )
    (out / CHECKPOINT).unlink(missing_ok=True)
    say(args, f"training: {history}\nmodel written to {out}")
    if over_budget:
        raise ValueError(f"the model in {out} is over budget: {over_budget}.")
    return None


def _fit_to_budget(
    args: argparse.Namespace,
    scorer: nn.Module,
    config: TrainConfig,
    data: dict[str, RankingDataset],
    notes: dict[str, Any],
) -> tuple[TrainConfig, History, str]:
    """Train to --budget, report, and keep in `notes` what was found.

    Returns the settings with the lambda that was found, the history, and why the model is over
    budget, which is nothing if it is not.
    """
    result = fit_to_budget(
        scorer,
        data["train"],
        args.budget,
        config,
        valid=data.get("valid"),
        progress=shows_progress(args),
    )
    config = replace(config, lam=result.lam)
    disparities = {part: objective_on(scorer, dataset, config)[1] for part, dataset in data.items()}
    notes["budget"] = {
        "delta": result.delta,
        "lam": result.lam,
        "utility": result.utility,
        "disparity": result.disparity,
        "message": result.message,
        "found": disparities,
    }
    report = ", ".join(f"{value:.3g} on {part}" for part, value in disparities.items())
    report += f", at lambda {result.lam:g}: {result.message}"
    is_within = result.disparity <= args.budget
    if is_within and disparities.get("test", 0.0) > args.budget:
        report += "; it does not carry over to test"
    say(args, f"disparity {report}")
    return config, result.history, "" if is_within else result.message


def _identity(
    config: TrainConfig,
    prepare: Preparation,
    scorer: nn.Module,
    budget: float | None,
    data: dict[str, RankingDataset],
) -> str:
    """A short hash of all that decides the model."""
    parts: list[Any] = [config.to_dict(), asdict(prepare), str(scorer), budget]
    parts += [dataset.fingerprint() for dataset in data.values()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _holds_model_of(out: Path, identity: str) -> bool:
    """Whether `out` holds the model of this run; another's is not to be touched."""
    if not (out / "model.json").exists():
        return False
    with suppress(ValueError):  # damaged, or of another version
        notes = load_model(out).meta.get("notes") or {}
        if notes.get("run") == identity:
            return True
    raise ValueError(f"{out} holds another model.json; give --overwrite to replace it.")
