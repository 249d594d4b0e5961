"""Files that come with the package, checked against their SHA-256."""

import hashlib
from functools import cache
from importlib.resources import files


@cache
def read_resource(name: str) -> bytes:
    """The bytes of `fairpg_lite/_data/<name>`, checked against SHA256SUMS; read once."""
    folder = files("fairpg_lite") / "_data"
    content = (folder / name).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if f"{found}  {name}\n" not in (folder / "SHA256SUMS").read_text("ascii"):
        wrong = f"fairpg_lite/_data/{name} has sha256 {found}, which SHA256SUMS does not list"
        raise ValueError(f"{wrong}: it was changed or damaged; reinstall fairpg-lite.")
    return content
