"""The four commands: each a function of the parsed arguments, whose docstring is its help."""

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from itertools import repeat
from math import isnan
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

from fairpg_lite._files import clear_leftovers, probe, whole_file
from fairpg_lite.cli import options as cli
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluation import evaluate as judge
from fairpg_lite.figures import plot_tradeoff, style
from fairpg_lite.measures import MEASURES
from fairpg_lite.models.model_file import SavedModel, load_model, save_model
from fairpg_lite.models.preparation import Preparation
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.scorers import new_scorer
from fairpg_lite.sweeps.curve import tradeoff
from fairpg_lite.training import loop as training
from fairpg_lite.training.budget import fit_to_budget
from fairpg_lite.training.config import TrainConfig

_GAINS = {"exponential": "2^grade - 1", "linear": "the grade", "binary": "1 for any grade above 0"}


def _config(args: argparse.Namespace, **changes: Any) -> TrainConfig:
    """The settings of a run; what cannot be meant is a wrong call."""
    if args.patience is not None and args.valid is None:
        raise cli.UsageError("--patience is for validation; give --valid FILE.")
    settings = {name: getattr(args, name) for name in cli.SETTINGS if hasattr(args, name)}
    try:
        return TrainConfig(**settings | changes)
    except ValueError as error:
        raise cli.UsageError(str(error).removeprefix("TrainConfig: ")) from error


def _data(
    args: argparse.Namespace, fair: bool, *parts: str
) -> tuple[Preparation, dict[str, RankingDataset]]:
    """TRAIN and some of "valid" and "test" as the scorer is to see them; how they were prepared."""
    train = cli.read(args, args.train, args.groups)
    names = ("normalize", "group_feature", "group_threshold")
    prepare = Preparation.learn(train, **{name: getattr(args, name) for name in names})
    data = {"train": prepare(train)}
    groups = data["train"].groups
    by_group = fair and "groups" in MEASURES[args.disparity].needs
    if by_group and (groups is None or len(groups.unique()) < 2):
        raise cli.UsageError(
            f"--disparity {args.disparity} needs documents of two groups in {args.train[0]}: give "
            "--group-feature ID or --groups FILE, or --disparity d_ind."
        )
    for part in parts:
        if (file := getattr(args, part)) is not None:
            labels = getattr(args, f"{part}_groups")
            data[part] = prepare(cli.read(args, [file], labels))
            if groups is not None and data[part].groups is None:
                raise cli.UsageError(f"--groups are of TRAIN; give --{part}-groups FILE, too.")
    return prepare, data


def fit(args: argparse.Namespace) -> int | None:
    """Train a policy on LETOR files, and leave a model directory.

    The policy maximises utility less lambda times disparity (Fair-PG-Rank). The directory gets
    model.json, which says in plain text how the model was made and holds the weights. A killed
    training continues when the same command is given again (with --budget it starts afresh).

    examples:
      fairpg-lite fit train.txt --valid valid.txt --group-feature 5 --lam 1 --out model/
      fairpg-lite fit train.txt --disparity d_ind --lam 10 --method exact --out model/
      fairpg-lite fit train.txt --valid valid.txt --group-feature 5 --budget 0.01 --out model/
    """
    config = _config(args)
    if args.budget is None and args.test is not None:
        raise cli.UsageError("--test reports on a --budget; judge a model by fairpg-lite evaluate.")
    prepare, data = _data(args, args.lam > 0 or args.budget is not None, "valid", "test")
    train = data["train"]
    scorer = new_scorer(train.n_features, args.hidden, seed=args.seed, dtype=train.features.dtype)
    asked = [config.to_dict(), asdict(prepare), str(scorer), args.budget]
    asked += [dataset.fingerprint() for dataset in data.values()]
    notes: dict[str, Any] = {part: str(dataset) for part, dataset in data.items()}
    notes["run"] = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
    out = Path(args.out)
    if args.force:
        _clear(out)
    elif _finished(out, notes["run"]):
        _clear(out)
        cli.say(args, f"{out} holds the model of this very command; there is nothing to do.")
        return None
    probe(out)  # before hours are spent
    how: dict[str, Any] = {"progress": cli.bars(args), "valid": data.get("valid")}
    if args.budget is None:
        how["checkpoint"] = out / "checkpoint.pt"
        history = training.fit(scorer, data["train"], config, **how)
        if history.stopped == "interrupted":
            cli.say(args, f"interrupted after {len(history)} epochs; the same command continues.")
            return cli.INTERRUPTED
    else:
        found = fit_to_budget(scorer, data["train"], args.budget, config, **how)
        history, config = found.history, replace(config, lam=found.lam)
        parts = {n: training.objective_on(scorer, part, config)[1] for n, part in data.items()}
        names = ("delta", "lam", "utility", "disparity", "message")
        notes["budget"] = {name: getattr(found, name) for name in names} | {"found": parts}
        told = ", ".join(f"{value:.3g} on {part}" for part, value in parts.items())
        over = parts.get("test", 0.0) > args.budget >= found.disparity
        told += f", at lambda {found.lam:g}: {found.message}"
        told += "; it does not carry over to test" if over else ""
        cli.say(args, f"disparity {told}")
    made: dict[str, Any] = {"prepare": prepare, "config": config, "notes": notes}
    save_model(scorer, out, history=history, overwrite=args.force, **made)
    _clear(out)
    cli.say(args, f"training: {history}\nmodel written to {out}")
    if args.budget is not None and found.disparity > args.budget:
        raise ValueError(f"the model in {out} is over budget: {found.message}.")
    return None


def _finished(out: Path, run: str) -> bool:
    """Whether `out` holds the model of this run; another's is not to be touched."""
    if not (out / "model.json").exists():
        return False
    with suppress(ValueError):  # damaged, or of another version
        if (load_model(out).meta.get("notes") or {}).get("run") == run:
            return True
    raise ValueError(f"{out} holds another model.json; give --force to replace it.")


def _clear(out: Path) -> None:
    """Remove what a training needs only while it lasts, and what a killed one left."""
    for name in ("checkpoint.pt", "model.json"):
        clear_leftovers(out / name)
    (out / "checkpoint.pt").unlink(missing_ok=True)


def sweep(args: argparse.Namespace) -> None:
    """The trade-off curve: models at several lambdas and seeds.

    Train a policy at every lambda and seed on TRAIN, judge each on TEST, and draw utility against
    disparity. The directory gets table.csv (a row for each run), tradeoff.png and tradeoff.svg
    (means over seeds with 95 % intervals) and the models. Killed at any moment, the same command
    goes on where it was; more values of --lam, or more --seeds, are added.

    examples:
      fairpg-lite sweep train.txt --test test.txt --group-feature 5 --lam 0 1 10 100 --out sweep/
      fairpg-lite sweep ... --scheduler tcp://host:8786 --out sweep/
    """
    config = _config(args, lam=0.0)
    prepare, data = _data(args, any(lam > 0 for lam in args.lam), "test", "valid")
    how: dict[str, Any] = {"n_jobs": args.jobs, "scheduler": args.scheduler, "force": args.force}
    how |= {"patience": args.cluster_patience, "progress": cli.bars(args)}
    how |= {"valid": data.get("valid"), "judge": cli.judging(args, args.gain, args.merit)}
    how |= {"config": config, "hidden": args.hidden, "prepare": prepare}
    lams = dict.fromkeys(args.lam)
    table = tradeoff(data["train"], data["test"], lams, args.seeds, out=args.out, **how)
    measure = args.disparity
    with style():
        figure = plot_tradeoff(table, x=measure).figure
        # Without date and version, the same table is the same file.
        for kind, unstamped in (("png", {"Software": None}), ("svg", {"Date": None})):
            with whole_file(Path(args.out) / f"tradeoff.{kind}") as picture:
                figure.savefig(picture, format=kind, metadata=unstamped)
    print(f"{'lambda':>8}{'NDCG':>10}{MEASURES[measure].label:>15}   means over {args.seeds} seeds")
    for lam, utility, disparity in table.groupby("lam")[["ndcg", measure]].mean().itertuples():
        print(f"{lam:8g}{utility:10.4f}{disparity:15.4f}")
    cli.say(args, f"{len(table)} runs: table, pictures and models in {args.out}")


def _read_for(args: argparse.Namespace, model: SavedModel, labels: str | None) -> RankingDataset:
    """The documents of `args.file` as `model` is to see them."""
    dtype = next(model.scorer.parameters()).dtype
    return model.prepare(cli.read(args, [args.file], labels, dtype=dtype))


def evaluate(args: argparse.Namespace) -> None:
    """Utility and disparity of a model on a LETOR file, or of two.

    Of one model: the stochastic policy, and the one ranking that is most probable under it
    (documents by score). Of two: what differs between their policies. All measures are means over
    queries and exact.

    examples:
      fairpg-lite evaluate model/ test.txt --k 10 --undefined skip
      fairpg-lite evaluate fair/ plain/ test.txt                 two models, query by query

    Gain and merit are those of the training, unless there is a --gain. The column "queries" counts
    those where a measure has an answer of its own: most have none where nothing is relevant,
    D_group none where a group or its merit is absent.
    """
    if len(args.model) > 2:
        raise cli.UsageError("evaluate compares two models at most.")
    models = [load_model(name) for name in args.model]
    trained = models[0].meta.get("training") or {}
    gain, merit = args.gain or trained.get("gain", "exponential"), trained.get("merit", "identity")
    data = [_read_for(args, model, args.groups) for model in models]
    if data[0].groups is None and models[0].prepare.groups_given:
        cli.say(args, "the training's groups came from a file; give --groups FILE for D_group.")
    how = cli.judging(args, gain, merit)
    alone = len(models) == 1
    policy = judge(models[0].scorer, data[0], **how)
    other = judge(models[-1].scorer, data[-1], deterministic=alone, **how)
    shown = [m for m in MEASURES if m != "ndcg_at_k" or args.k is not None]
    ours, theirs = ([_shown(getattr(found, m)) for m in shown] for found in (policy, other))
    if alone:
        title, ends = args.model[0], [_shown(*policy.interval(m)) for m in shown]
        columns = {f"{'policy':>10}": ours, f"{'95 % interval':>20}": ends}
        columns[f"{'most probable':>15}"] = theirs
    else:
        title = "A = {} and B = {}".format(*args.model)
        less = [policy.compare(other, m) for m in shown]
        columns = {f"{'A':>10}": ours, f"{'B':>10}": theirs}
        columns[f"{'A - B':>10}"] = [_shown(d.mean) for d in less]
        columns[f"{'95 % interval':>20}"] = [_shown(d.low, d.high) for d in less]
        columns[f"{'p':>8}"] = [_shown(d.p_value) for d in less]
    columns[f"{'queries':>9}"] = [f"{policy.defined[m]:,}" for m in shown]
    print(f"{title} on {args.file}: {len(data[0]):,} queries, {data[0].n_documents:,} documents\n")
    print(f"{'':14}" + "".join(columns))
    at = "" if args.k is None else f"@{args.k}"
    names = MEASURES | {"ndcg_at_k": f"NDCG{at}", "err": f"ERR{at}"}
    for measure, *row in zip(shown, *columns.values(), strict=True):
        cells = [value.rjust(len(head)) for value, head in zip(row, columns, strict=True)]
        print(f"{names[measure]:14}" + "".join(cells))
    rest = f"count {args.undefined} in NDCG, 0 in ERR and disparity"
    rest = "are left out of NDCG and D_group" if args.undefined == "skip" else rest
    rest = f"Queries without an answer {rest} (--undefined {args.undefined})."
    print(f"\nGain: {_GAINS[gain]}. {rest}")
    print("Intervals: bootstrap over queries" + ("." if alone else "; p: sign flips."))


def _shown(*values: float) -> str:
    """A number, or the two ends of an interval; what is not defined is a dash."""
    return "-" if isnan(values[0]) else " to ".join(f"{value:.4f}" for value in values)


def rank(args: argparse.Namespace) -> None:
    """Rankings of a LETOR file's documents, drawn from a model's policy.

    It is the draws that are fair in expectation. The same --seed gives the same rankings: use a
    new one whenever people are to see new draws.

    examples:
      fairpg-lite rank model/ test.txt --samples 3 --seed 7 > rankings.jsonl
      fairpg-lite rank model/ test.txt --samples 3 --format trec --output run.txt

    output: on each line a ranking, best first, {"query": 7, "sample": 0, "ranking": [2, 0, 1]}, or
      runs as trec_eval reads them, one for each draw: run.0.txt, run.1.txt and so on. Documents
      have the names that comments give them (#docid = NAME), otherwise numbers from 0 within
      their query, in the order of the file.
    """
    files = [] if args.output is None else [Path(args.output)]
    if args.format == "trec" and args.samples > 1:
        if not files:
            raise cli.UsageError("several draws are several TREC runs; give --output FILE.")
        files = [files[0].with_suffix(f".{i}{files[0].suffix}") for i in range(args.samples)]
    model = load_model(args.model)
    dataset = _read_for(args, model, None)
    generator = torch.Generator().manual_seed(args.seed)
    queries = np.asarray(dataset.query_ids).tolist()
    given = repeat("") if dataset.documents is None else iter(dataset.documents)
    with ExitStack() as stack:
        parts = [stack.enter_context(whole_file(file)) for file in files]
        opened = [stack.enter_context(open(part, "x", encoding="utf-8")) for part in parts]
        streams: Sequence[TextIO] = opened or [sys.stdout]
        for qid, query in zip(queries, dataset, strict=True):
            names = [name or i for i, name in zip(range(len(query.relevance)), given, strict=False)]
            with torch.no_grad():
                policy = PlackettLuce(model.scorer(query.features))
            for sample, ranking in enumerate(policy.sample((args.samples,), generator).tolist()):
                text = _text(args.format, qid, sample, [names[i] for i in ranking])
                streams[sample % len(streams)].write(text)


def _text(kind: str, qid: Any, sample: int, ranking: list[Any]) -> str:
    """One ranking as it is written."""
    if kind == "jsonl":
        return json.dumps({"query": qid, "sample": sample, "ranking": ranking}) + "\n"
    # query Q0 document rank score run; trec_eval goes by the score, so it falls with the rank.
    run, n = f"fairpg_lite.{sample}", len(ranking)
    return "".join(f"{qid} Q0 {name} {i + 1} {n - i} {run}\n" for i, name in enumerate(ranking))
