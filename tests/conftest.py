"""One thread per test: the suite runs in two processes, and sums keep their order."""

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("house", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("house")


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)
