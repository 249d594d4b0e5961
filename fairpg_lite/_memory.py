"""How much is worked on at once, so that temporary tables stay small."""

# Elements of the largest temporary table.
_CHUNK = 1_000_000


def pieces(length: int, cells: int) -> list[slice]:
    """Slices of an axis, each with as many steps of so many cells as make about a million."""
    size = max(1, _CHUNK // max(1, cells))
    return [slice(i, i + size) for i in range(0, length, size)]
