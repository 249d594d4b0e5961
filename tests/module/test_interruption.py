"""Ctrl-C, a real SIGINT: `fit` keeps the last finished epoch, and KeyboardInterrupt goes on."""

import os
import signal
import sys
import threading
import time
from itertools import count

import pytest
import torch

from fairpg_lite import LinearScorer, MLPScorer, TrainConfig, fit, synthetic
from fairpg_lite.training import loop, run


def linear(seed=0):
    return LinearScorer(2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def weights(scorer):
    return [value.clone() for value in scorer.state_dict().values()]


def equal(scorer, expected):
    return all(map(torch.equal, weights(scorer), expected))


def settings(**changes):
    return TrainConfig(**{"lam": 5.0, "lr": 0.1, "lr_decay": 0.5, "epochs": 6, **changes})


def interrupt_at_call(scorer, number):
    """Send SIGINT to this process while the scorer is called for the ``number``-th time."""
    calls = count(1)

    def hook(*_):
        if next(calls) == number:
            signal.raise_signal(signal.SIGINT)

    scorer.register_forward_hook(hook)


@pytest.mark.parametrize("method", ["sample", "exact"])
def test_the_last_finished_epoch_is_kept(tmp_path, method):
    """In the fourth epoch of six: what there is, is that of a training of three epochs."""
    data, path = synthetic(n_queries=10, seed=0), tmp_path / "checkpoint"
    scorer = linear()
    interrupt_at_call(scorer, 35)
    with pytest.raises(KeyboardInterrupt):
        fit(scorer, data, settings(method=method), progress=False, checkpoint=path)
    short = linear()
    fit(short, data, settings(method=method, epochs=3), progress=False)
    assert equal(scorer, weights(short))
    stored = torch.load(path, weights_only=True)
    assert len(stored["history"]["utility"]) == 3
    assert equal(short, list(stored["scorer"].values()))

    undisturbed, continued = linear(), linear(seed=5)
    expected = fit(undisturbed, data, settings(method=method), progress=False)
    history = fit(continued, data, settings(method=method), progress=False, checkpoint=path)
    assert equal(continued, weights(undisturbed))
    assert history == expected


def test_the_best_finished_epoch_is_kept_where_there_is_validation(tmp_path):
    """Validation queries on which the training makes it worse from epoch to epoch."""
    data, valid = synthetic(n_queries=10, seed=0), synthetic(n_queries=5, seed=1)
    valid = valid.replace(relevance=valid.relevance.max() - valid.relevance)
    config = settings(lam=0.0, method="exact")
    undisturbed = linear()
    history = fit(undisturbed, data, config, valid, progress=False, checkpoint=tmp_path / "a")
    assert history.kept == 1  # what this is about
    scorer = linear()
    interrupt_at_call(scorer, 35)  # in the fourth epoch: one call validates
    with pytest.raises(KeyboardInterrupt):
        fit(scorer, data, config, valid, progress=False, checkpoint=tmp_path / "b")
    assert equal(scorer, weights(undisturbed))
    again = linear(seed=9)
    continued = fit(again, data, config, valid, progress=False, checkpoint=tmp_path / "b")
    assert continued == history
    assert equal(again, weights(undisturbed))


def test_in_the_first_epoch_the_weights_stay_as_they_were(tmp_path):
    scorer = linear()
    interrupt_at_call(scorer, 5)
    data, path = synthetic(n_queries=10), tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        fit(scorer, data, settings(), progress=False, checkpoint=path)
    assert equal(scorer, weights(linear()))
    assert not path.exists()


@pytest.mark.parametrize("kind", [LinearScorer, MLPScorer])
def test_compiled_epochs_are_interrupted_alike(tmp_path, kind):
    """From outside, at an unknown moment: a compiled loop has nothing to hook on to."""

    def new():
        return kind(2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    data, path = synthetic(n_queries=2000, seed=0), tmp_path / "checkpoint"
    config = settings(compiled=True, lr_decay=1.0, lr=1e-3, epochs=10_000)

    def interrupt_once_there_is_a_checkpoint():
        while not path.exists():
            time.sleep(0.001)
        time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    scorer = new()
    thread = threading.Thread(target=interrupt_once_there_is_a_checkpoint)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        fit(scorer, data, config, progress=False, checkpoint=path)
    thread.join()
    stored = torch.load(path, weights_only=True)
    assert equal(scorer, list(stored["scorer"].values()))

    done = len(stored["history"]["utility"])
    config = settings(compiled=True, lr_decay=1.0, lr=1e-3, epochs=done + 2)
    undisturbed, continued = new(), new()
    fit(undisturbed, data, config, progress=False)
    fit(continued, data, config, progress=False, checkpoint=path)
    assert equal(continued, weights(undisturbed))


def interrupted_at_line(number, *arguments, **options):
    """`fit`, interrupted before the ``number``-th line in its files; how many lines there were."""
    files = {loop.__file__, run.__file__}
    lines = count(1)
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            seen = next(lines)
            if seen == number:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        fit(*arguments, **options)
    finally:
        sys.settrace(before)
    return seen


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("validates", [False, True])
def test_at_any_line_scorer_and_checkpoint_tell_of_the_same_epoch(tmp_path, monkeypatch, validates):
    """One run for each line of two epochs, at which Ctrl-C comes."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
    data = synthetic(n_queries=2, n_docs=3, seed=0)
    valid = synthetic(n_queries=2, n_docs=3, seed=1) if validates else None
    config = settings(epochs=2, method="exact", batch_size=2)
    after = {0: weights(linear())}
    for epochs in (1, 2):
        scorer = linear()
        short = settings(epochs=epochs, method="exact", batch_size=2)
        fit(scorer, data, short, valid, progress=False)
        after[epochs] = weights(scorer)
    lines = interrupted_at_line(
        0, linear(), data, config, valid, progress=False, checkpoint=tmp_path / "whole"
    )
    kept = set()
    for number in range(1, lines + 1):
        scorer, path = linear(), tmp_path / str(number)
        with pytest.raises(KeyboardInterrupt):
            interrupted_at_line(
                number, scorer, data, config, valid, progress=False, checkpoint=path
            )
        epochs = 0
        if path.exists():
            epochs = len(torch.load(path, weights_only=True)["history"]["utility"])
        assert equal(scorer, after[epochs]), number
        kept.add(epochs)
        fit(scorer, data, config, valid, progress=False, checkpoint=path)
        assert equal(scorer, after[2]), number
    assert kept == {0, 1, 2}
