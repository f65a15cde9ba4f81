"""A release's page as a reader sees it: light and dark, wide and narrow, in Chromium."""

from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from results import pages
from results.store import Store
from tests.browser import complaints, shown
from tests.results.releases import two_releases

SCREENS = [(1400, False), (1400, True), (380, False), (380, True)]

# WCAG 2.2: every text against what is painted behind it; 4.5 for text, 3 for large text.
LOW_CONTRAST = """
const luminance = ([r, g, b]) => [r, g, b]
    .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const colour = text => text.match(/[\\d.]+/g).map(Number);
const ground = element => {
    for (let at = element; at; at = at.parentElement) {
        const found = colour(getComputedStyle(at).backgroundColor);
        if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
};
const found = [];
let read = 0;
for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || ["STYLE", "TITLE"].includes(element.tagName.toUpperCase())) continue;
    const style = getComputedStyle(element);
    const ink = colour(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const [low, high] = [luminance(ink), luminance(ground(element))].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    read += 1;
    if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) found.push([element.textContent.trim(), ratio]);
}
return [read, found];
"""

BEYOND = """
const width = document.documentElement.clientWidth;
return [...document.querySelectorAll("body *")].filter(element => {
    const box = element.getBoundingClientRect();
    const scrolled = element.closest(".scroll");
    return box.width && !element.closest(".skip") && (scrolled && scrolled !== element ? false : box.right > width + 1);
}).map(element => element.outerHTML.slice(0, 100));
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    records = Store(tmp_path_factory.mktemp("results") / "records")
    for row in two_releases():
        records.append(row)
    place = records.directory.parent / "standings" / "0.2.0"
    pages.write(pages.files_of(pages.page_of(records.read(), "0.2.0"), place, records.directory), place)
    return place / "standings.html"


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_the_page_is_readable_on_every_screen(browser, page, width, dark):
    shown(browser, page.as_uri(), width=width, dark=dark)
    assert complaints(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    assert browser.execute_script(BEYOND) == []
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    read, low = browser.execute_script(LOW_CONTRAST)
    assert read > 300
    assert low == []


def test_the_contrast_is_really_computed(browser, page):
    shown(browser, page.as_uri())
    browser.execute_script("document.body.style.setProperty('--faint', '#bbbbbb')")
    _, low = browser.execute_script(LOW_CONTRAST)
    assert any(text.startswith("commit") for text, _ in low)
    assert any(text == "target 0.65" for text, _ in low)


def test_every_link_leads_somewhere_and_nothing_is_fetched(browser, page):
    shown(browser, page.as_uri())
    links = browser.execute_script("return [...document.links].map(link => link.href)")
    anchors = set(browser.execute_script("return [...document.querySelectorAll('[id]')].map(found => found.id)"))
    files = [urlsplit(link) for link in links if not link.startswith(f"{page.as_uri()}#")]
    assert {link.partition("#")[2] for link in links if link.startswith(f"{page.as_uri()}#")} <= anchors
    assert len(files) > 70
    for link in files:
        path = Path(link.path)
        assert link.scheme == "file"
        assert int(link.fragment.removeprefix("L")) <= len(path.read_text().splitlines())
    assert browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)") == []
    assert "undefined" not in browser.find_element("tag name", "body").text


def test_a_figure_can_be_followed_to_its_rows(browser, page):
    shown(browser, page.as_uri())
    browser.find_element("css selector", "table a[href^='#rows-']").click()
    target = browser.execute_script("return document.querySelector(':target').getBoundingClientRect().top")
    assert 0 <= target < 900


def test_the_page_can_be_heard(browser, page):
    shown(browser, page.as_uri())
    script = browser.execute_script
    assert script("return document.documentElement.lang") == "en"
    levels = script("return [...document.querySelectorAll('h1,h2,h3')].map(found => +found.tagName[1])")
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert script("return [...document.querySelectorAll('table')].every(table => table.caption)")
    assert script("return [...document.querySelectorAll('th')].every(head => head.scope)")
    assert script(
        "return [...document.querySelectorAll('svg')].every(svg => svg.getAttribute('aria-label').length > 20)"
    )
    assert script(
        "return [...document.querySelectorAll('.scroll')].every(part => part.tabIndex === 0 && part.ariaLabel)"
    )
