"""What a training run reports: `History`."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class History:
    """The course of a training, one entry per epoch in each list; returned by `fit` (chapter 7).

    >>> from fairpg_lite import LinearScorer, TrainConfig, fit, synthetic
    >>> history = fit(LinearScorer(2), synthetic(20), TrainConfig(epochs=3), progress=False)
    >>> len(history), history.stopped, history.kept
    (3, 'epochs', 3)
    """

    utility: list[float] = field(default_factory=list)
    """Mean over the training queries as seen during the epoch, sampled if the training samples."""
    disparity: list[float] = field(default_factory=list)
    """Mean over the training queries as seen during the epoch, sampled if the training samples."""
    entropy: list[float] = field(default_factory=list)
    """Mean entropy of Softmax(scores) over the training queries as seen during the epoch."""
    gradient_norm: list[float] = field(default_factory=list)
    """Mean norm of the gradient over the updates of the epoch."""
    valid_utility: list[float] = field(default_factory=list)
    """Exact mean over the validation queries after the epoch; empty without them."""
    valid_disparity: list[float] = field(default_factory=list)
    """Exact mean over the validation queries after the epoch; empty without them."""
    stopped: str = ""
    """Why the training ended, "epochs" or "patience"; empty while it runs."""
    kept: int = 0
    """The epoch, counted from 1, whose weights the scorer holds; 0 while the training runs."""
    compiled: bool = False
    """Whether the compiled way trained, and not autograd; the numbers are the same."""

    def __len__(self) -> int:
        """The number of finished epochs."""
        return len(self.utility)

    def __repr__(self) -> str:
        epochs = f"{len(self)} epochs"
        if self._epoch_to_report != len(self):
            epochs += f", of which {self._epoch_to_report} is kept"
        measures = []
        for name, value in self._means().items():
            measures.append(f"{name.replace('_', ' ')} {value:.5f}")
        stopped = self.stopped or "nothing yet"
        return f"History({epochs}: {', '.join(measures)}, stopped by {stopped})"

    def summary(self) -> dict[str, Any]:
        """The training in a few plain values, for a result file.

        Returns:
            ``epochs`` (how many there were), ``stopped``, ``kept``, and utility and disparity of
            the epoch that is kept, on the training queries and, with validation, on those too.

        >>> History(utility=[0.5, 0.75], disparity=[0.25, 0.125], stopped="epochs").summary()
        {'epochs': 2, 'stopped': 'epochs', 'kept': 2, 'utility': 0.75, 'disparity': 0.125}
        """
        return {
            "epochs": len(self),
            "stopped": self.stopped,
            "kept": self._epoch_to_report,
            **self._means(),
        }

    @property
    def _epoch_to_report(self) -> int:
        """The epoch that is kept, or the last one while the training runs."""
        return self.kept or len(self)

    def _means(self) -> dict[str, float]:
        """Utility and disparity of the epoch to report, as far as they were measured."""
        columns = {
            "utility": self.utility,
            "disparity": self.disparity,
            "valid_utility": self.valid_utility,
            "valid_disparity": self.valid_disparity,
        }
        means = {}
        for name, column in columns.items():
            if column:
                means[name] = column[self._epoch_to_report - 1]
        return means
