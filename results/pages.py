"""A release's page on disk: written whole, and compared with its rows. May import results.render_release.

The files of a page are a function of the published rows. Drawings also depend on the Matplotlib that made them: where
another one did, what they say in words is compared in place of their strokes.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from pathlib import Path

from PIL import Image

from results.drawings import DRAWN_BY
from results.release import release_of
from results.release_view import View, view
from results.render_release import to_html, to_markdown
from results.store import Content

STROKES = re.compile(r'(?s)(<svg [^>]*?aria-label="[^"]*"[^>]*>|</metadata>).*?</svg>')
"""What lies between the words of a drawing and its end."""


def page_of(content: Content, tag: str) -> View:
    """The page of release `tag`, from published rows.

    Raises
    ------
    LookupError
        If none is of this release.
    """
    return view(release_of(content.rows, tag), content.stored)


def files_of(page: View, directory: Path, records: Path) -> dict[str, bytes]:
    """Every file of a page, by name, as it stands in `directory` and links to the rows in `records`."""
    link = Path(os.path.relpath(records, directory)).as_posix()
    files = {"standings.html": to_html(page, link).encode(), "standings.md": to_markdown(page, link).encode()}
    for drawing in page.drawings:
        files[f"{drawing.name}.svg"] = drawing.svg().encode()
        files[f"{drawing.name}.png"] = drawing.png()
    return files


def write(files: dict[str, bytes], directory: Path) -> list[Path]:
    """Put files into a directory, each whole or not at all, and take away those of a page that it no longer has.

    Raises
    ------
    OSError
        If the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        _replace(directory / name, data)
    for path in _others(directory, files):
        path.unlink()
    return [directory / name for name in files]


def disagreements(files: dict[str, bytes], directory: Path) -> list[str]:
    """In which files a page on disk says something else than its rows; empty if in none."""
    found = []
    for name, expected in files.items():
        path = directory / name
        if not path.is_file():
            found.append(f"{path} is missing")
        elif not _agree(path.read_bytes(), expected):
            found.append(f"{path} and its rows disagree")
    return found + [f"{path} is no part of the page any more" for path in _others(directory, files)]


def _agree(found: bytes, expected: bytes) -> bool:
    """Whether a file says what it should."""
    if expected.startswith(b"\x89PNG"):
        return _png_words(found) == _png_words(expected)  # its bytes are also those of zlib and FreeType
    if found == expected:
        return True
    drawer = DRAWN_BY.encode()
    return drawer in expected and drawer not in found and _words(found) == _words(expected)


def _words(data: bytes) -> str:
    text = re.sub(r"Matplotlib v[\w.+]+", "", data.decode(errors="replace"))
    return STROKES.sub(r"\1</svg>", text)


def _png_words(data: bytes) -> str | None:
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            return image.info.get("Description")
    except (OSError, SyntaxError, ValueError):  # what Pillow raises for a torn file
        return None


def _others(directory: Path, files: dict[str, bytes]) -> list[Path]:
    """Files of an earlier page whose ladder or axis is gone."""
    return (
        sorted(path for path in directory.iterdir() if path.suffix in (".svg", ".png") and path.name not in files)
        if directory.is_dir()
        else []
    )


def _replace(path: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        try:
            file.write(data)
            file.close()
            os.chmod(file.name, 0o644)  # a temporary file is its owner's alone
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
