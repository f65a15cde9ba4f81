"""NVIDIA's compiler and disassembler from PyPI, with no GPU and no CUDA toolkit. May import errors.

The compiler is NVRTC, which is what compiles the kernels on a machine that runs them; called through ctypes, because
CuPy does not load where there is no driver.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from engine.errors import EngineError

NVRTC_PACKAGE, NVDISASM_PACKAGE = "nvidia-cuda-nvrtc", "nvidia-cuda-nvdisasm"


class ToolchainError(EngineError, RuntimeError):
    """A tool is not installed, or refused its input."""


@dataclass(frozen=True)
class Program:
    """What NVRTC makes of a source: the binary of one architecture, the PTX it went through, and the log."""

    cubin: bytes
    ptx: str
    log: str


def compile_program(source: str, arch: str, options: tuple[str, ...]) -> Program:
    """Compile a source for one architecture, such as ``sm_90``.

    Raises
    ------
    ToolchainError
        With the compiler's messages.
    """
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"dyno.cu", 0, None, None), "create")
    try:
        arguments = [f"--gpu-architecture={arch}".encode(), *(option.encode() for option in options)]
        status = nvrtc.nvrtcCompileProgram(program, len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
        log = _output(program, "ProgramLog").decode()
        if status:
            raise ToolchainError(f"the kernels do not compile for {arch}:\n{log}")
        return Program(_output(program, "CUBIN"), _output(program, "PTX").decode(), log)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def compiler_version() -> str:
    """Of NVRTC, such as ``13.0``."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "version")
    return f"{major.value}.{minor.value}"


def disassemble(cubin: bytes) -> str:
    """The machine code (SASS) of a binary, as text."""
    tool = _installed(NVDISASM_PACKAGE, "nvdisasm")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([tool, "--print-code", file.name], capture_output=True, text=True)
    if done.returncode:
        raise ToolchainError(f"nvdisasm: {done.stderr.strip()}")
    return done.stdout


@cache
def _nvrtc() -> ctypes.CDLL:
    return ctypes.CDLL(str(_installed(NVRTC_PACKAGE, "libnvrtc.so.*")))


def _installed(package: str, name: str) -> Path:
    """The file of that name in a package from PyPI."""
    try:
        found = [file for file in files(package) or () if file.match(name) and ".alt." not in file.name]
    except PackageNotFoundError:
        raise ToolchainError(
            f"{package} is not installed, so the kernels cannot be compiled here: "
            f"pip install {NVRTC_PACKAGE} {NVDISASM_PACKAGE}"
        ) from None
    if not found:
        raise ToolchainError(f"the installed {package} has no {name}: pip install --force-reinstall {package}")
    return Path(found[0].locate())


def _output(program: ctypes.c_void_p, what: str) -> bytes:
    """One of the byte strings that NVRTC keeps with a program, without the zero that ends a text."""
    size = ctypes.c_size_t()
    _check(getattr(_nvrtc(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)), what)
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(_nvrtc(), f"nvrtcGet{what}")(program, buffer), what)
    return buffer.raw if what == "CUBIN" else buffer.value


def _check(status: int, what: str) -> None:
    if status:
        _nvrtc().nvrtcGetErrorString.restype = ctypes.c_char_p
        raise ToolchainError(f"NVRTC, {what}: {_nvrtc().nvrtcGetErrorString(status).decode()}")
