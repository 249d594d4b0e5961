"""How much is worked on at once, so that temporary tables stay small."""

# Elements of the largest temporary table.
_CHUNK = 1_000_000


def pieces(length: int, cells_per_step: int) -> list[slice]:
    """Slices that cover ``range(length)``, each of about `_CHUNK` cells.

    Args:
        length: Steps along the axis that is cut.
        cells_per_step: Elements of the temporary table that one step needs.

    Returns:
        Slices of one step at least.
    """
    steps = max(1, _CHUNK // max(1, cells_per_step))
    return [slice(start, start + steps) for start in range(0, length, steps)]
