"""Files that come with the package, checked against their SHA-256."""

import hashlib
from functools import cache
from importlib.resources import files


@cache
def read_resource(name: str) -> bytes:
    """Return the bytes of `fairpg_lite/_data/<name>`, checked against SHA256SUMS; read once."""
    folder = files("fairpg_lite") / "_data"
    content = (folder / name).read_bytes()
    checksum = hashlib.sha256(content).hexdigest()
    if f"{checksum}  {name}\n" not in (folder / "SHA256SUMS").read_text("ascii"):
        raise ValueError(
            f"fairpg_lite/_data/{name} has sha256 {checksum}, which SHA256SUMS does not list: "
            "it was changed or damaged; reinstall fairpg-lite."
        )
    return content
