"""A throwaway git repository whose commits fit nothing and print what was planted, under seeded noise."""

import subprocess

MEASURE = "python3 fit.py"

FIT = """
import json, os, random
history = json.load(open("state.json"))
if history.get("broken"):
    raise SystemExit("does not build")
counter = os.environ["DYNO_TEST_COUNTER"]
with open(counter, "a") as file:
    file.write(os.environ["DYNO_COMMIT"] + "\\n")
run = sum(1 for _ in open(counter))
random.seed(f"{history['seed']}/{run}")
noise = random.gauss(0, history["noise"])
phases = {name: seconds * 2.718281828 ** noise for name, seconds in history["phases"].items()}
print("libraries print what they like")
print("RESULT " + json.dumps({"train_s": sum(phases.values()), "phases": phases, **history["exact"]}))
"""


def git(repository, *words):
    names = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(repository), *names, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def make_history(folder, states):
    """A commit for each state (a JSON text of `FIT`'s fields); the hashes, oldest first."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "fit.py").write_text(FIT)
    commits = []
    for state in states:
        (folder / "state.json").write_text(state)
        git(folder, "add", ".")
        git(folder, "commit", "-q", "--allow-empty", "-m", f"commit {len(commits)}")
        commits.append(git(folder, "rev-parse", "HEAD"))
    return commits
