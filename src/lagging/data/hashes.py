# SPDX-License-Identifier: Apache-2.0
"""Numbers for ids, references and files: every hash of a segment is made here.

Two numbers stand for an id, and in both 7 and "7" are one id. `id_codes` are quick, 32 bits: they spread segments over
buckets, and help to find repeated ids. `segment_keys` have 64 bits: two different ids practically never share one.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Ints
from lagging.data.run import Ids, Run

__all__ = ["id_codes", "reference_hashes", "segment_keys", "short_hash"]


def id_codes(ids: Ids | Sequence[int | str]) -> npt.NDArray[np.uint32]:
    """CRC-32 of the text of each id, in UTF-8.

    Example:
        >>> id_codes([7, "7", "talk-8"]).tolist()
        [1790921346, 1790921346, 3094953602]
    """
    names = ids.tolist() if isinstance(ids, np.ndarray) else ids
    encoded = (str(name).encode("utf-8", "surrogatepass") for name in names)
    return np.fromiter(map(zlib.crc32, encoded), np.uint32, len(names))


def segment_keys(ids: Ids) -> Ints:
    """A number for each id; other ids have the same number with a probability of 2⁻⁶⁴. 7 and "7" are one id.

    Example:
        >>> segment_keys(np.array([7, 8])).tolist(), segment_keys(np.array(["7", "talk-8"], dtype=object)).tolist()
        ([7, 8], [7, -7045287484367045979])
    """
    if ids.dtype != object:
        return ids.astype(np.int64, copy=False)
    return np.array([_key(str(name)) for name in ids.tolist()], dtype=np.int64)


def _key(name: str) -> int:
    if len(name) <= 20 and name.removeprefix("-").isdecimal():
        number = int(name)
        if str(number) == name and -(2**63) <= number < 2**63:
            return number
    encoded = name.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "little", signed=True)


def short_hash(lines: Iterable[str]) -> str:
    """Eight hexadecimal digits of SHA-256, by which a signature tells other lines apart.

    Example:
        >>> short_hash(["a", "b"])
        '7e18f737'
    """
    text = "\n".join(lines)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def reference_hashes(run: Run) -> Ints:
    """A number for each reference, another one for other texts; 0 without a reference."""
    if run.reference is None:
        return np.zeros(len(run), dtype=np.int64)
    texts = run.reference.tolist()
    return np.array([zlib.crc32(text.strip().encode("utf-8", "replace")) if text else 0 for text in texts], np.int64)
