"""A headless browser for tests of pages: Debian's Chromium, driven by selenium, which downloads nothing here."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

NEEDED = {"chromium": "chromium", "chromedriver": "chromium-driver"}
"""Programs and the Debian packages that have them."""


@contextmanager
def opened_browser() -> Iterator[webdriver.Chrome]:
    """A browser of its own, with an empty profile; set width and colours with `shown`.

    Raises
    ------
    FileNotFoundError
        Names the package that is missing.
    """
    for program, package in NEEDED.items():
        if shutil.which(program) is None:
            raise FileNotFoundError(f"{program} is not installed: apt-get install {package}, or make browser as root")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    # No sandbox: it needs a user other than root, and CI is root. No /dev/shm: containers have 64 MB of it.
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


def shown(browser: webdriver.Chrome, url: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
    """Load a page as a screen of that size shows it, for someone who prefers light or dark."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get_log("browser")  # what earlier pages left
    browser.get(url)


def complaints(browser: webdriver.Chrome) -> list[str]:
    """What the page wrote to the console as warnings or errors, missing files included."""
    return [json.dumps(entry) for entry in browser.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder on the loopback interface: pages that fetch data do not work from files."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    handler = functools.partial(Silent, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
