"""What a training run tells: `History` (chapter 7)."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class History:
    """One entry per epoch in each list; returned by ``fit``.

    ``utility`` and ``disparity`` are means over the training queries as seen during the epoch
    (sampled if the training sampled); ``valid_utility`` and ``valid_disparity`` are exact, on the
    validation set, after the epoch.
    """

    utility: list[float] = field(default_factory=list)
    disparity: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    valid_utility: list[float] = field(default_factory=list)
    valid_disparity: list[float] = field(default_factory=list)
    stopped: str = ""
    """Why training ended, "epochs", "patience" or "interrupted"."""
    kept: int = 0
    """The epoch, counted from 1, whose weights the scorer holds; 0 before the first."""
    compiled: bool = False
    """Whether the compiled way trained, and not autograd; the numbers are the same."""

    def __len__(self) -> int:
        return len(self.utility)

    def __repr__(self) -> str:
        epochs, stopped, kept, *_ = (told := self.summary()).values()
        measures = ", ".join(f"{k.replace('_', ' ')} {v:.5f}" for k, v in list(told.items())[3:])
        of = "" if kept == epochs else f", of which {kept} is kept"
        return f"History({epochs} epochs{of}: {measures}, stopped by {stopped or 'nothing yet'})"

    def summary(self) -> dict[str, Any]:
        """The training in few numbers."""
        kept = self.kept or len(self)
        names = ("utility", "disparity", "valid_utility", "valid_disparity")
        last = {name: getattr(self, name)[kept - 1] for name in names if getattr(self, name)}
        return {"epochs": len(self), "stopped": self.stopped, "kept": kept, **last}
