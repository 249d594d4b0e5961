"""What happened during training, epoch by epoch."""

from dataclasses import asdict, dataclass, field
from typing import Any

from fairpg_lite._extras import require


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
    kept: int = 0
    """The epoch, counted from 1, whose weights the scorer holds; 0 before the first."""
    compiled: bool = False
    """Whether the compiled way trained, and not autograd; the numbers are the same."""

    def __len__(self) -> int:
        return len(self.utility)

    def __repr__(self) -> str:
        if not self.utility:
            return "History(no epochs)"
        kept = self.kept or len(self)
        of = "" if kept == len(self) else f", of which {kept} is kept"
        measures = ", ".join(f"{k.replace('_', ' ')} {v:.5f}" for k, v in self.at(kept).items())
        return (
            f"History({len(self)} epochs{of}: {measures}, stopped by "
            f"{self.stopped or 'nothing yet'})"
        )

    def append(self, row: dict[str, float]) -> None:
        for name, value in row.items():
            getattr(self, name).append(value)

    def at(self, epoch: int) -> dict[str, float]:
        """Utility and disparity of an epoch, counted from 1, on training and validation queries."""
        names = ("utility", "disparity", "valid_utility", "valid_disparity")
        return {name: getattr(self, name)[epoch - 1] for name in names if getattr(self, name)}

    def summary(self) -> dict[str, Any]:
        """The training in few numbers; without times, so that equal runs give equal files."""
        kept = self.kept or len(self)
        summary: dict[str, Any] = {"epochs": len(self), "stopped": self.stopped, "kept": kept}
        if kept:
            ends = self.at(1), self.at(kept), self.at(len(self))
            for name in ends[0]:
                values = [row[name] for row in ends]
                summary[name] = dict(zip(("first", "kept", "last"), values, strict=True))
        return summary

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
