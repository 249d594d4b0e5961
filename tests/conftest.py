"""What the tests share: examples of Hypothesis, Ctrl-C, a browser, a generator."""

import signal

import pytest
import torch
from hypothesis import settings

# A run in the background (nohup, &) ignores Ctrl-C and hands that on to every process it starts;
# the tests that send a Ctrl-C must not depend on how the run was started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The same examples on every run, and none fails because the machine is busy.
settings.register_profile("house", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("house")


@pytest.fixture(scope="module")  # while it runs, no other event loop can in this process
def chrome():
    """A running browser. Whoever asks for it is marked `browser` by the conftest.py above."""
    from tools.chromium import chromium

    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def window(chrome):
    """A window of it, for one page after the other: a new one for each costs a second."""
    import browser

    return browser.Visit(chrome)


@pytest.fixture
def generator():
    """A stream of random numbers that begins anew in each test."""
    return torch.Generator().manual_seed(0)
