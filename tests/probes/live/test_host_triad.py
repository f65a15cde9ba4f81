import numpy as np
import pytest

from probes.live.host_triad import CHUNK, SCALE, _Part, bind_host_triad


@pytest.mark.parametrize("length", [1, 7, CHUNK, CHUNK + 1, 3 * CHUNK - 1])
def test_it_is_a_triad_over_every_element(length):
    part = _Part(length)
    part.run()
    a, b, c = part._arrays
    assert np.array_equal(a, b + SCALE * c)
    b[:] = np.arange(length)
    part.run()
    assert np.array_equal(a, np.arange(length) + SCALE * c)


@pytest.mark.parametrize(("nbytes", "threads"), [(24, 1), (1, 1), (24 * 1000, 3), (2**20, 2)])
def test_the_bytes_are_those_of_three_arrays(nbytes, threads):
    run, moved = bind_host_triad(nbytes, threads)
    run()
    run()
    assert moved == 24 * threads * max(1, nbytes // 24 // threads)
