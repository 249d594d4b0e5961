"""Lists for requests: the same one for a user all day, another one for the next user (chapter 14).

A policy is served by drawing a list for each request,

    PlackettLuce(scores / temperature).sample(k=10)

and it is the draws that are fair in expectation. Somebody who reloads a page should perhaps not see
another list each time; `seed_for` then gives each user and day a seed.
"""

import hashlib

from fairpg_lite import _check

# A seed has so many bits: what a stream of random numbers can begin with.
_BITS = 60


def seed_for(user: str, day: str, *, salt: bytes) -> int:
    """A seed for the lists of one user on one day.

    .. warning::
       The salt decides all lists. Whoever knows it beforehand can try many salts, look at the lists
       that each would give, and keep one that suits; to publish its hash first does not help
       against that. Let the salt be 16 bytes or more that nobody chose,
       ``secrets.token_bytes(16)``, or, where somebody must be convinced, join your secret with a
       number that the auditor draws after you have committed to it.

    Args:
        user: Who asks; for the same answer in two searches put the query in, too.
        day: When, such as "2026-11-18": after it the user gets other lists.
        salt: A secret of 16 bytes or more, the same for all users.

    Returns:
        A number for ``torch.Generator().manual_seed``, or for the argument ``seed`` of
        `FairRanker`'s ``rank``.

    >>> seed_for("anna", "2026-11-18", salt=bytes(16)) % 1000
    387
    """
    if not isinstance(user, str) or not isinstance(day, str):
        raise TypeError(
            f"seed_for: user is {_check.kind_of(user)} and day is {_check.kind_of(day)}; give "
            "strings."
        )
    if not isinstance(salt, bytes):
        raise TypeError(
            f"seed_for: salt is {_check.kind_of(salt)}; give bytes, secrets.token_bytes(16)."
        )
    if len(salt) < 16:
        raise ValueError(
            f"seed_for: salt has {len(salt)} bytes, which can be guessed; give 16 or more, "
            "secrets.token_bytes(16)."
        )
    # Lengths in front, so that no two pairs of user and day are written alike.
    name = user.encode()
    message = len(name).to_bytes(8, "big") + name + day.encode()
    digest = hashlib.blake2b(message, key=hashlib.sha256(salt).digest()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _BITS)
