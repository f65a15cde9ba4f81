"""asv on two commits of this very repository: run, publish, compare, continuous, and the page in a browser.

A real virtualenv and two real wheels: about a minute on two cores, most of it the first build. The second compiles
nothing, as its commit changes a comment.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from results.store import Store
from tests.benchmarks.conftest import ROOT
from tests.browser import complaints, served, shown

RUN = [
    "fit.Fit.(time_train|track_quality|track_model_digest).*'engine-(depth|level)wise', 'tall'",
    "kernels.Kernels.track_(syncs|model_digest)",
]

LIBRARIES = {
    "jquery-3.3.1.min.js": ("jquery@3.3.1", "dist/jquery.min.js", True),
    "jquery.flot.orderBars.js": ("flot-orderbars@1.0.0", "js/jquery.flot.orderBars.js", True),
    "md5.min.js": ("blueimp-md5@2.19.0", "js/md5.min.js", True),
    "bootstrap.min.js": ("bootstrap@3.1.1", "dist/js/bootstrap.min.js", True),
    "bootstrap.min.css": ("bootstrap@3.1.1", "dist/css/bootstrap.min.css", True),
    "jquery.flot.min.js": ("flot@0.8.3", "jquery.flot.js", False),
    "jquery.flot.time.min.js": ("flot@0.8.3", "jquery.flot.time.js", False),
    "jquery.flot.selection.min.js": ("flot@0.8.3", "jquery.flot.selection.js", False),
    "jquery.flot.categories.min.js": ("flot@0.8.3", "jquery.flot.categories.js", False),
    "stupidtable.min.js": ("stupid-table-plugin@1.1.3", "stupidtable.min.js", False),
}
"""What asv's page loads from the network: the npm package with it, and whether it is the very file whose hash the page
demands (the browser checks it); the others are the same code unminified, or the next version of a table sorter."""


@pytest.fixture(scope="module")
def checkout(once):
    """A clone with the suite of the working tree and a commit that changes a comment, measured and published."""
    return once("asv_checkout", measure)


def measure(clone):
    git("clone", "--quiet", ROOT, clone)
    for name in ("benchmarks", "asv.conf.json"):  # as they stand, so that this test sees what is being edited
        path = clone / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, path)
    git("checkout", "--quiet", "-B", "main", at=clone)
    commit(clone, "the suite")
    with (clone / "engine" / "cores.py").open("a") as file:
        file.write("\n# A comment.\n")
    commit(clone, "a comment")
    log = call(clone, "dyno", "asv-machine")
    log += call(clone, "asv", "run", "HEAD~2..HEAD", "--quick", "--show-stderr", *chosen(RUN))
    log += call(clone, "asv", "publish")
    (clone / "log.txt").write_text(log)


def git(*arguments, at=None):
    where = ["-C", str(at)] if at else []
    done = subprocess.run(["git", *where, *map(str, arguments)], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(clone, message):
    git("add", "--all", at=clone)
    author = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    git(*author, "commit", "--quiet", "--allow-empty", "--message", message, at=clone)


def chosen(patterns):
    return [part for pattern in patterns for part in ("--bench", pattern)]


def call(clone, program, *arguments):
    """Output of a command that must exit 0, in an environment that reads nothing of the user's but pip's cache."""
    found = shutil.which(program, path=str(Path(sys.executable).parent))
    assert found, f"{program} is not installed beside this Python: make setup"
    home = clone.with_name("home_of_" + clone.name.removeprefix("unfinished_"))
    home.mkdir(exist_ok=True)
    pip = os.environ.get("PIP_CACHE_DIR") or str(Path.home() / ".cache" / "pip")
    thresholds = home / "forgiving.toml"
    thresholds.write_text("".join(f"[cpu-{what}-under-load]\nfail_above = 101\n" for what in ("throttled", "stolen")))
    own = {"HOME": str(home), "DYNO_CACHE_DIR": str(home / "cache"), "DYNO_THRESHOLDS": str(thresholds)}
    environment = {**os.environ, **own, "PIP_CACHE_DIR": pip}
    done = subprocess.run(
        [found, *arguments], cwd=clone, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, f"{program} {arguments} exits {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def results_of(clone):
    """asv's results by commit."""
    from asv.results import iter_results

    return {results.commit_hash: results for results in iter_results(str(clone / ".asv" / "results"))}


def value(results, benchmark):
    return [one for one in results.get_result_value(benchmark, results.get_result_params(benchmark)) if one == one]


def test_both_commits_are_measured_on_their_own_wheels(checkout):
    found = results_of(checkout)
    commits = git("rev-list", "--max-count=2", "HEAD", at=checkout).split()
    assert set(found) == set(commits)
    assert all(results.env_name.startswith("virtualenv-py3") for results in found.values())
    wheels = [path.name for path in (checkout / ".asv" / "env").rglob("*.whl") if "asv-build-cache" in path.as_posix()]
    assert len(wheels) == 2
    for results in found.values():
        assert all(seconds > 0 for seconds in value(results, "fit.Fit.time_train"))
        assert len(value(results, "fit.Fit.time_train")) == 2


def test_a_comment_changes_no_count_and_no_bit(checkout):
    first, second = results_of(checkout).values()
    for name in (
        *(f"kernels.Kernels.track_{what}" for what in ("syncs", "model_digest")),
        "fit.Fit.track_model_digest",
    ):
        assert value(first, name) == value(second, name) != []


def test_two_benchmarks_read_one_fit(checkout):
    """Two contenders on one rung of two commits are four fits, though three benchmarks report of each."""
    rows = Store(checkout / ".asv" / "rows").read().rows
    assert len(rows) == 4
    assert {row.status for row in rows} == {"ok"}
    assert {row.commit for row in rows} == set(results_of(checkout))


def test_the_machine_is_filed_by_passport(checkout):
    (path,) = (checkout / ".asv" / "results").glob("*/machine.json")
    machine = json.loads(path.read_text())
    assert path.parent.name == machine["machine"]
    assert machine["machine"].endswith(machine["passport"][:8])
    assert {"gpu", "driver", "passport_class"} <= set(machine)


def test_compare_and_continuous_find_nothing(checkout):
    told = call(checkout, "asv", "compare", "HEAD~1", "HEAD")
    assert "track_model_digest" in told
    told = call(
        checkout, "asv", "continuous", "HEAD~1", "HEAD", "--quick", *chosen(["Kernels.track_(syncs|model_digest)"])
    )
    assert "BENCHMARKS NOT SIGNIFICANTLY CHANGED" in told


def test_an_existing_environment_is_measured_as_it_is(checkout):
    """Whatever is installed beside asv, filed under the commit that the caller names; nothing is built."""
    head = git("rev-parse", "HEAD", at=checkout)
    where = ["-E", f"existing:{sys.executable}", "--set-commit-hash", head]
    call(checkout, "asv", "run", *where, "--quick", "--dry-run", *chosen(["Kernels.track_syncs"]))


def test_the_page_shows_both_points(checkout, browser, tmp_path):
    page = offline(checkout / ".asv" / "html", tmp_path)
    with served(page) as address:
        shown(browser, f"{address}/#fit.Fit.time_train?p-rung='tall'")
        points = wait_for(browser, "return $('#main-graph').data('plot').getData().map(one => one.data)")
        assert complaints(browser) == []
    measured = [[point for point in line if point[1] is not None] for line in points]
    assert [len(line) for line in measured if line] == [2, 2]


def offline(html, folder):
    """The published page with what it loads from the network beside it."""
    assert shutil.which("npm"), (
        "npm is not installed, and asv's page loads its libraries from the network: apt-get install npm"
    )
    packages = sorted({package for package, _, _ in LIBRARIES.values()})
    npm = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
    subprocess.run([*npm, *packages], check=True, capture_output=True, timeout=120)
    page = Path(shutil.copytree(html, folder / "html"))

    def beside(link):
        address, attributes = link.groups()
        name = address.rpartition("/")[2]
        package, file, exact = LIBRARIES[name]
        shutil.copy(folder / "node_modules" / package.partition("@")[0] / file, page / name)
        return f'"{name}"' + (attributes if exact else re.sub(r'integrity="[^"]*"', "", attributes))

    index = page / "index.html"
    index.write_text(re.sub(r'"(https://[^"]+\.(?:js|css))"([^>]*)', beside, index.read_text()))
    return page


def wait_for(browser, script):
    """What a script gives as soon as it gives something; at most 20 seconds."""
    from selenium.common.exceptions import JavascriptException
    from selenium.webdriver.support.ui import WebDriverWait

    waiting = WebDriverWait(browser, 20, ignored_exceptions=[JavascriptException])
    return waiting.until(lambda opened: opened.execute_script(script))
