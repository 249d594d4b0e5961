"""Train a policy on LETOR files, and leave a model directory.

The policy maximises utility less lambda times disparity (Fair-PG-Rank). DIR gets model.json, which
says in plain text how the model was made and holds the weights. A killed training continues when
the same command is given again (but not with --budget, whose search starts afresh).

examples:
  fairpg-lite fit train.txt --out model/                                    plain PG-Rank
  fairpg-lite fit train.txt --valid valid.txt --patience 5 --group-feature 5 --lam 1 --out model/
  fairpg-lite fit train.txt --disparity individual --lam 10 --method exact --out model/
  fairpg-lite fit train.txt --valid valid.txt --group-feature 5 --budget 0.01 --out model/

groups: from a feature (--group-feature, above --group-threshold or one group per value), or
  from a file with one label per document (--groups); needed for --disparity group.
"""

import argparse
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairpg_lite._files import clear_leftovers
from fairpg_lite._tradeoff import new_scorer
from fairpg_lite.budget import fit_to_budget
from fairpg_lite.cli import _common as cli
from fairpg_lite.cli._data import hidden_units, training_config, training_data
from fairpg_lite.data import RankingDataset
from fairpg_lite.models import load_model, save_model
from fairpg_lite.train import fit, objective_on

USAGE = "%(prog)s TRAIN [TRAIN ...] --out DIR [options]"


def add_options(parser: argparse.ArgumentParser) -> None:
    cli.add(parser, "train", nargs="+")
    cli.add(parser, "--out", required=True)
    cli.add(parser.add_mutually_exclusive_group(), "--lam", "--budget")
    cli.add(parser, "--force", "--seed", *cli.TRAINING)
    cli.add(parser, "--test", help="with --budget: LETOR file to report the disparity on, too")


def run(args: argparse.Namespace) -> int:
    fair = args.lam > 0 or args.budget is not None
    config = training_config(args, fair)
    if args.budget is None and args.test is not None:
        raise cli.UsageError("--test reports on a --budget; judge a model by fairpg-lite evaluate.")
    prepare, data = training_data(args, fair, "valid", "test")
    scorer = new_scorer(data["train"], hidden_units(args), args.seed)
    notes: dict[str, Any] = {part: _about(dataset) for part, dataset in data.items()}
    settings = [config.to_dict(), prepare.to_dict(), str(scorer), args.budget]
    asked = [*settings, *(dataset.fingerprint() for dataset in data.values())]
    notes["run"] = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
    out = cli.prepare_out(args.out)
    if not args.force and _finished(out, notes["run"]):
        _clear(out)
        cli.say(args, f"{out} holds the model of this very command; there is nothing to do.")
        return cli.DONE
    watch: dict[str, Any] = {"progress": cli.bars(args), "valid": data.get("valid")}
    result, checkpoint = None, out / "checkpoint.pt"
    if args.force:
        checkpoint.unlink(missing_ok=True)
    continued = ", continued" if checkpoint.exists() else ""
    if args.budget is None:
        history = fit(scorer, data["train"], config, checkpoint=checkpoint, **watch)
        if history.stopped == "interrupted":
            cli.say(args, f"interrupted after {len(history)} epochs; the same command continues.")
            return cli.INTERRUPTED
    else:
        result = fit_to_budget(scorer, data["train"], args.budget, config, **watch)
        history, config = result.history, replace(config, lam=result.lam)
        names = ("delta", "lam", "utility", "disparity", "converged", "message")
        found = {part: objective_on(scorer, dataset, config)[1] for part, dataset in data.items()}
        notes["budget"] = {name: getattr(result, name) for name in names} | {"found": found}
    made: dict[str, Any] = {"prepare": prepare, "config": config, "notes": notes}
    save_model(scorer, out, history=history, overwrite=args.force, **made)
    _clear(out)
    cli.say(args, f"training{continued}: {history}\nmodel written to {out}")
    if result is not None:
        parts = ", ".join(f"{value:.3g} on {part}" for part, value in found.items())
        text = f"budget {result.delta:g}: disparity {parts}, at lambda {result.lam:g}"
        if result.disparity > result.delta:
            raise cli.CliError(f"{text}; {result.message}; the model in {out} is over budget.")
        if found.get("test", 0.0) > result.delta:
            text += "; it does not carry over to test"
        cli.say(args, f"{text}; {result.message}")
    return cli.DONE


def _about(dataset: RankingDataset) -> dict[str, Any]:
    """A dataset in few words: its name, not its place on a disk."""
    about = {"name": dataset.info.get("name"), "queries": len(dataset)}
    about |= {"documents": dataset.n_documents, "features": dataset.n_features}
    groups = None if dataset.groups is None else dataset.groups.bincount().tolist()
    return about | {"documents_per_group": groups}


def _finished(out: Path, run: str) -> bool:
    """Whether `out` holds the model of this run; another's is not to be touched."""
    if not (out / "model.json").exists():
        return False
    try:
        theirs = (load_model(out).meta.get("notes") or {}).get("run")
    except ValueError:
        theirs = None
    if theirs != run:
        raise cli.CliError(
            f"{out} already holds model.json; pass --force to replace it, or choose another --out."
        )
    return True


def _clear(out: Path) -> None:
    """Remove what a training needs only while it lasts, and what a killed one left."""
    for name in ("checkpoint.pt", "model.json"):
        clear_leftovers(out / name)
    (out / "checkpoint.pt").unlink(missing_ok=True)
