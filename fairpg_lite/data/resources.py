"""The data files that the package carries, each checked against `_data/SHA256SUMS`."""

import hashlib
from functools import cache
from importlib.resources import files


def _checksums() -> dict[str, str]:
    lines = (files("fairpg_lite") / "_data" / "SHA256SUMS").read_text("ascii").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


@cache
def read_resource(name: str) -> bytes:
    """The bytes of `fairpg_lite/_data/<name>`, verified; read once per process."""
    content = (files("fairpg_lite") / "_data" / name).read_bytes()
    expected, found = _checksums().get(name), hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ValueError(
            f"fairpg_lite/_data/{name} has sha256 {found}, SHA256SUMS says {expected}: the file "
            "was changed or damaged; reinstall fairpg-lite."
        )
    return content
