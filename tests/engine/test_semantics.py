"""semantics.cuh stays a text that NVRTC can compile too: no headers, no std, no CUDA-only names."""

import re
from pathlib import Path

SOURCE = (Path(__file__).parents[2] / "engine/kernels/semantics.cuh").read_text()
CODE = re.sub(r"//[^\n]*", "", SOURCE)


def test_includes_nothing():
    assert "#include" not in CODE


def test_uses_neither_the_standard_library_nor_cuda_builtins():
    assert "std::" not in CODE
    assert not re.search(r"\b(__fma|fma|__double2|__float_as|__longlong_as|threadIdx|blockIdx|__shfl|atomic)\w*", CODE)
    assert not re.search(r"\b(exp|log|rint|sqrt|pow|fabs|memcpy)\s*\(", CODE)


def test_is_marked_for_both_compilers():
    host, device = re.search(
        r"#if defined\(__CUDACC__\).*?#define DYNO_FN (.*?)\n#else\n#define DYNO_FN (.*?)\n", CODE, re.S
    ).groups()
    assert "__device__" in host
    assert "inline" in device
