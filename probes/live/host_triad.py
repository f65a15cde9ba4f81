"""The host's memory bandwidth, by a triad over threads. May import NumPy and the standard library."""

from __future__ import annotations

import threading

import numpy as np

from probes.parts import Call

CHUNK = 32768
"""Doubles a step: the scratch of 256 KiB stays in a core's L2, so it costs no memory traffic."""

SCALE = 3.0


def bind_host_triad(nbytes: int, threads: int) -> tuple[Call, int]:
    """``a = b + s * c`` in doubles, each thread on its own part of the arrays.

    Parameters
    ----------
    nbytes : int
        Of the three arrays together; several times the last cache, or the cache is measured.
    threads : int
        NumPy gives the interpreter up while it computes.

    Returns
    -------
    tuple of callable and int
        Run it once; and the bytes it moves: two arrays read, one written. Reading lines before they are written is
        not counted, as in STREAM (McCalpin, https://www.cs.virginia.edu/stream/), which this follows.
    """
    length = max(1, nbytes // 24 // threads)
    parts = [_Part(length) for _ in range(threads)]

    def run() -> None:
        workers = [threading.Thread(target=part.run) for part in parts[1:]]
        for worker in workers:
            worker.start()
        parts[0].run()
        for worker in workers:
            worker.join()

    return run, 24 * length * threads


class _Part:
    """One thread's slice of the arrays; touched first by the thread that made it, as NUMA placement wants."""

    def __init__(self, length: int):
        self._length = length
        self._arrays: tuple[np.ndarray, ...] | None = None

    def run(self) -> None:
        if self._arrays is None:
            self._arrays = tuple(np.full(self._length, value) for value in (0.0, 1.0, 2.0))
        a, b, c = self._arrays
        scratch = np.empty(min(CHUNK, self._length))
        for start in range(0, self._length, CHUNK):
            stop = min(start + CHUNK, self._length)
            scaled = scratch[: stop - start]
            np.multiply(c[start:stop], SCALE, out=scaled)
            np.add(b[start:stop], scaled, out=a[start:stop])
