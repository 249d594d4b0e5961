"""What happened during training, epoch by epoch."""

from dataclasses import asdict, dataclass, field
from typing import Any

from fairpg_lite._extras import require

COLUMNS = ("utility", "disparity", "entropy", "gradient_norm", "seconds")


@dataclass
class History:
    """One entry per epoch in each list; returned by ``fit``.

    ``utility`` and ``disparity`` are means over the training queries as seen during the epoch
    (sampled if the training sampled); ``valid_utility`` and ``valid_disparity`` are exact, on the
    validation set, after the epoch.

    Chapter 7.
    """

    config: dict[str, Any] = field(default_factory=dict)
    utility: list[float] = field(default_factory=list)
    disparity: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    valid_utility: list[float] = field(default_factory=list)
    valid_disparity: list[float] = field(default_factory=list)
    stopped: str = ""
    """Why training ended: "epochs", "patience" or "interrupted"."""

    def __len__(self) -> int:
        return len(self.utility)

    def __repr__(self) -> str:
        if not self.utility:
            return "History(no epochs)"
        return (
            f"History({len(self)} epochs, utility {self.utility[-1]:.4f}, "
            f"disparity {self.disparity[-1]:.5f}, stopped by {self.stopped or 'nothing yet'})"
        )

    def append(self, row: dict[str, float]) -> None:
        for name, value in row.items():
            getattr(self, name).append(value)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, ready for JSON."""
        return asdict(self)

    def plot(self, axes: Any = None) -> Any:
        """Utility and disparity against epochs, in two panels; returns the matplotlib axes."""
        pyplot = require("matplotlib.pyplot", "plots")
        if axes is None:
            _, axes = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
        epochs = range(1, len(self) + 1)
        for axis, name in zip(axes, ("utility", "disparity"), strict=True):
            axis.plot(epochs, getattr(self, name), label="training")
            valid = getattr(self, f"valid_{name}")
            if valid:
                axis.plot(epochs, valid, linestyle="--", label="validation")
            axis.set_xlabel("epoch")
            axis.set_ylabel(name)
            axis.legend()
        return axes
