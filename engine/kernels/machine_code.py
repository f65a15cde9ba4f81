"""What the compiler made of each kernel: registers, shared memory, spills, and the instructions that the gates watch.
May import the kernels room and errors.

Compiling for one architecture takes seconds, so what was found is kept under the cache directory, by the hash of the
sources, of this code and of the compiler's version.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from engine.kernels import COMPILE_OPTIONS, UMBRELLA, source_digest, source_folder
from engine.kernels.toolchain import Program, compile_program, compiler_version, disassemble

WATCHED = re.compile(r"^(ATOM|RED|LDL|STL|DFMA|FFMA)")
"""Instructions that are counted; see `engine.kernels.gates` for why."""

_PTX_ENTRY = re.compile(r"^(?:\.visible )?\.entry (\w+)\(", re.MULTILINE)
_PTX_INSTRUCTION = re.compile(r"^\s*(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s", re.MULTILINE)
_PTX_FLOAT = re.compile(r"\.(b?f16|f32|f64)")
_LOG_KERNEL = re.compile(r"Function properties for (\w+)\n(.*?)(?=Compiling entry|Function properties|\Z)", re.DOTALL)
_SASS_SECTION = re.compile(r"^\.text\.(\w+):", re.MULTILINE)
_SASS_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z][A-Z0-9_.]*)")


@dataclass(frozen=True)
class Kernel:
    """One kernel as compiled for one architecture."""

    name: str
    arch: str
    block: int
    """Threads a block at the most, as the compiler was told; 0 if it was not."""
    registers: int
    shared: int
    """Static, in bytes; what a launch adds is in the file's header."""
    local: int
    """Bytes of stack and of spills a thread."""
    inexact: tuple[str, ...]
    """PTX float instructions that may be contracted, approximated, or depend on the order of atomics."""
    divisions: int
    """PTX divisions and square roots: the compiler expands them with fused multiply-adds of its own."""
    instructions: dict[str, int]
    """How often each watched machine instruction occurs."""


def compiled_kernels(arch: str, folder: Path | None = None, cache: Path | None = None) -> list[Kernel]:
    """Every kernel of the umbrella file, compiled for one architecture such as ``sm_90``.

    Parameters
    ----------
    arch : str
    folder : Path, optional
        Of the sources; default this package's.
    cache : Path, optional
        Where findings are kept; default ``$DYNO_CACHE_DIR/kernels`` or the platform's cache directory. One that
        cannot be written keeps nothing.

    Raises
    ------
    ToolchainError
        If the compiler is not installed or does not accept the sources.
    """
    folder = folder or source_folder()
    cache = cache or _cache_folder()
    path = cache / f"{arch}-{_digest(folder)}.json"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        held = FileLock(f"{path}.lock").acquire()
    except OSError:
        return _compile(arch, folder)
    with held:  # two test workers want the same architecture: one compiles, the other waits
        if not path.exists():
            kernels = [asdict(kernel) for kernel in _compile(arch, folder)]
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(kernels))
            unfinished.replace(path)
        return [Kernel(**{**facts, "inexact": tuple(facts["inexact"])}) for facts in json.loads(path.read_text())]


def read_program(program: Program, arch: str) -> list[Kernel]:
    """What the PTX, the log and the machine code of a program say of each of its kernels."""
    properties = dict(_LOG_KERNEL.findall(program.log))
    instructions = _sections(_SASS_SECTION, disassemble(program.cubin))
    return [
        _read_kernel(name, arch, body, properties[name], instructions[name])
        for name, body in sorted(_sections(_PTX_ENTRY, program.ptx).items())
    ]


def _compile(arch: str, folder: Path) -> list[Kernel]:
    options = (*COMPILE_OPTIONS, f"--include-path={folder}", "--ptxas-options=-v")
    return read_program(compile_program(f'#include "{UMBRELLA}"\n', arch, options), arch)


def _read_kernel(name: str, arch: str, ptx: str, properties: str, sass: str) -> Kernel:
    floats = [instruction for instruction in _PTX_INSTRUCTION.findall(ptx) if _PTX_FLOAT.search(instruction)]
    return Kernel(
        name=name,
        arch=arch,
        block=_largest(r"\.maxntid (\d+)", ptx),
        registers=_largest(r"Used (\d+) registers", properties),
        shared=_largest(r"(\d+) bytes smem", properties),
        local=_largest(r"(\d+) bytes (?:stack frame|spill)", properties),
        inexact=tuple(sorted({instruction for instruction in floats if _is_inexact(instruction)})),
        divisions=sum(instruction.startswith(("div.rn", "rcp.rn", "sqrt.rn")) for instruction in floats),
        instructions=dict(Counter(filter(WATCHED.match, _SASS_INSTRUCTION.findall(sass)))),
    )


def _is_inexact(instruction: str) -> bool:
    """Whether a float instruction is fused or may be, is approximate, flushes denormals, or sums in any order."""
    operation, *modifiers = instruction.split(".")
    if operation in ("fma", "mad", "atom", "red") or not {"approx", "full", "ftz"}.isdisjoint(modifiers):
        return True
    return operation in ("add", "sub", "mul", "div", "rcp", "sqrt") and "rn" not in modifiers


def _largest(pattern: str, text: str) -> int:
    return max((int(number) for number in re.findall(pattern, text)), default=0)


def _sections(heading: re.Pattern[str], text: str) -> dict[str, str]:
    """The text after each heading, by the name in it, up to the next heading."""
    found = list(heading.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {match[1]: text[match.end() : end] for match, end in zip(found, ends, strict=True)}


def _cache_folder() -> Path:
    chosen = os.environ.get("DYNO_CACHE_DIR")
    return (Path(chosen) if chosen else user_cache_path("gbt-dyno", appauthor=False)) / "kernels"


def _digest(folder: Path) -> str:
    """Of everything that decides what is found."""
    digest = hashlib.sha256(" ".join((compiler_version(), *COMPILE_OPTIONS, source_digest(folder))).encode())
    for name in ("machine_code.py", "toolchain.py"):
        digest.update((source_folder() / name).read_bytes())
    return digest.hexdigest()[:20]
