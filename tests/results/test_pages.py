import random
import re
from html.parser import HTMLParser
from itertools import groupby

import pytest

from results import pages
from results.drawings import DRAWN_BY
from results.store import Store, records_store
from tests.results.releases import two_releases


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("results") / "records")
    for row in two_releases():
        store.append(row)
    return store


@pytest.fixture(scope="module")
def place(records):
    return records.directory.parent / "standings" / "0.2.0"


@pytest.fixture(scope="module")
def files(records, place):
    return pages.files_of(pages.page_of(records.read(), "0.2.0"), place, records.directory)


@pytest.fixture
def written(files, tmp_path):
    pages.write(files, tmp_path)
    return tmp_path


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def of(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def test_the_same_rows_give_the_same_bytes(records, place, files):
    assert pages.files_of(pages.page_of(records.read(), "0.2.0"), place, records.directory) == files


def test_every_figure_leads_to_its_rows(records, place, files):
    page = Elements(files["standings.html"].decode())
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for attributes in page.of("a")]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    rows = [link for link in links if ".jsonl#L" in link]
    assert len(rows) == len(set(rows)) > 70
    for link in rows:
        name, _, line = link.partition("#L")
        path = (place / name).resolve()
        assert path.parent == records.directory.resolve()
        assert '"release":"0.2.0"' in path.read_text().splitlines()[int(line) - 1]


def test_a_figure_and_its_rows_agree(records, files):
    text = files["standings.html"].decode()
    content = {f"{item.path.stem}:{item.line}": item.row for item in records.read().stored}
    anchor = 'id="rows-flights-delay-2-threads-engine-depthwise"'
    evidence = text[text.index(anchor) :].partition("</tr>")[0]
    named = [name for name in content if f">{name}</a>" in evidence]
    times = sorted(content[name].train_s for name in named)
    assert len(times) == 6
    assert f">{(times[2] + times[3]) / 2:.2f}</a>" in text
    assert content[named[0]].command in evidence


def test_names_and_messages_are_text_and_nothing_comes_from_outside(files):
    text = files["standings.html"].decode()
    page = Elements(text)
    assert not page.of("script")
    assert not page.of("b")
    assert "&lt;script&gt;fetch(" in text
    for tag, attributes in page.found:
        for name in ("src", "href", "xlink:href"):
            assert not (attributes.get(name) or "").startswith(("http:", "https:", "//")), (tag, attributes)
    assert "url(#" in text
    assert "@import" not in text
    markdown = files["standings.md"].decode()
    command = "`` dyno ladder run <script>fetch('http://example.com')</script> | `*_"
    assert markdown.count("<script>") == markdown.count(command) == 1
    assert "\\<script\\>" in markdown
    assert "\\<b\\>late" in markdown


def test_tables_of_the_markdown_page_are_tables(files):
    lines = [re.sub(r"`.*`|\\.", "", line) for line in files["standings.md"].decode().splitlines()]
    tables = [list(group) for is_table, group in groupby(lines, lambda line: line.startswith("|")) if is_table]
    assert len(tables) > 8
    for table in tables:
        assert len({line.count("|") for line in table}) == 1
        assert set(table[1]) == set("| -:")
        assert len(table) > 2
    anchors = set(re.findall(r'<a id="([^"]*)"', files["standings.md"].decode()))
    assert set(re.findall(r"\]\(#([^)]*)\)", files["standings.md"].decode())) <= anchors
    images = re.findall(r"\]\(([\w-]+\.svg)\)", files["standings.md"].decode())
    assert set(images) == {name for name in files if name.endswith(".svg")}


def test_losses_and_what_is_missing_stand_in_the_page(files):
    for name in ("standings.html", "standings.md"):
        text = files[name].decode()
        assert "not measured" in text
        assert "Not measured: training time over rows, depth" in text
        assert "slower" in text
        assert "not measured in the earlier release" in text
        assert "no rival with the same knobs not measured" in text
        assert "error x1" in text


def test_a_written_page_agrees_with_its_rows(files, written):
    assert pages.disagreements(files, written) == []


@pytest.mark.parametrize("name", ["standings.html", "standings.md", "headline.svg", "flights-panels.svg"])
def test_one_changed_figure_is_found(files, written, name):
    text = (written / name).read_text()
    place = text.rindex("0.6" if name == "headline.svg" else "1")
    (written / name).write_text(text[:place] + "9" + text[place + 1 :])
    assert pages.disagreements(files, written) == [f"{written / name} and its rows disagree"]


def test_other_rows_are_found_in_every_kind_of_file(records, place, written):
    rows = [row for row in two_releases() if row.contender != "bonsai-depthwise"]
    store = Store(written / "records")
    random.Random(0).shuffle(rows)
    for row in rows:
        store.append(row)
    other = pages.files_of(pages.page_of(store.read(), "0.2.0"), place, records.directory)
    found = pages.disagreements(other, written)
    assert {line.split()[0].rpartition("/")[2] for line in found} == set(other)


def test_what_is_missing_torn_or_left_over_is_found(files, written):
    (written / "headline.png").write_bytes(files["headline.png"][:500])
    (written / "standings.md").unlink()
    (written / "gone-panels.svg").write_text("")
    assert pages.disagreements(files, written) == [
        f"{written / 'standings.md'} is missing",
        f"{written / 'headline.png'} and its rows disagree",
        f"{written / 'gone-panels.svg'} is no part of the page any more",
    ]
    pages.write(files, written)
    assert pages.disagreements(files, written) == []


def test_a_page_drawn_by_another_matplotlib_is_read_by_its_words(files, written):
    for name in ("standings.html", "headline.svg"):
        text = files[name].decode().replace(DRAWN_BY, "Matplotlib v2.0.0").replace("M 0 ", "M 0.25 ")
        assert text.count("M 0.25 ")
        (written / name).write_text(text)
    assert pages.disagreements(files, written) == []
    (written / "headline.svg").write_text(text.replace("of bonsai-depthwise", "of catboost", 1))
    assert pages.disagreements(files, written) == [f"{written / 'headline.svg'} and its rows disagree"]


def test_a_page_is_written_whole_or_not_at_all(files, written):
    before = (written / "standings.md").read_bytes()
    with pytest.raises(TypeError):
        pages.write({"standings.md": "no bytes"}, written)
    assert (written / "standings.md").read_bytes() == before
    assert {path.name for path in written.iterdir()} == set(files)


def test_the_pages_of_this_repository_agree_with_their_rows():
    """If this fails, the rows or the texts changed: dyno standings --release TAG writes the page again."""
    records = records_store()
    published = sorted(path for path in (records.directory.parent / "standings").iterdir() if path.is_dir())
    assert published
    content = records.read()
    for directory in published:
        page = pages.page_of(content, directory.name)
        assert pages.disagreements(pages.files_of(page, directory, records.directory), directory) == []
