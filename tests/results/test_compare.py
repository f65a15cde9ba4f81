import pytest

from results.compare import NotComparableError, compare_rows
from results.render_compare import sentence, to_values
from tests.results.history import commit, fit, noisy

A, B = commit(0), commit(1)
RIVAL = {"contender": "xgboost-depthwise", "knobs_asked": {"other": 1}}


def blocks(slower, noise=0.002, rival=1.0, **changes):
    """Seven blocks of both commits, the rival slower by a factor at B."""
    rows = []
    for number in range(7):
        ours = noisy(number, 2, 2, noise, slow_from=1, slower=slower, block=number, **changes)
        theirs = noisy(100 + number, 2, 2, noise, slow_from=1, slower=rival, block=number, **RIVAL)
        rows += [row.model_copy(update={"order": order}) for order, row in enumerate([*ours, *theirs])]
    return rows


def test_slower_with_its_phase():
    (one,) = compare_rows(blocks(1.15), A, B)
    assert (one.verdict.name, one.control, one.verdict.blocks) == ("slower", "xgboost-depthwise", 7)
    assert one.verdict.ratio == pytest.approx(1.1, abs=0.01)
    assert one.moved[0] == ("histogram", pytest.approx(1.0, abs=0.2))
    assert "slower" in sentence(one)
    assert "histogram" in sentence(one)
    assert to_values([one])[0]["exit_code"] == 1


def test_what_slowed_the_rival_too_is_the_same():
    (one,) = compare_rows(blocks(1.15, rival=1.15), A, B)
    assert one.verdict.name == "same"
    (alone,) = [one for one in compare_rows(blocks(1.15, rival=1.15), A, B, control=None) if "engine" in str(one.cell)]
    assert (alone.verdict.name, alone.control) == ("slower", None)


def test_counts_and_bits_that_changed_are_told():
    rows = [
        row.model_copy(
            update={"syncs": 4 if row.commit == A else 5, "model_digest": ("a" if row.commit == A else "b") * 64}
        )
        for row in blocks(1.0)
    ]
    (one,) = compare_rows(rows, A, B)
    assert one.verdict.name == "same"
    assert [change[0] for change in one.changed] == ["syncs", "model_digest"]
    assert "syncs 4 to 5" in sentence(one)


def test_two_hosts_are_refused_and_told_why():
    other = {"digest": "another host"}
    rows = [fit(0), fit(1, passport_before=other, passport_after=other)]
    with pytest.raises(NotComparableError, match="measured on host 5a1e7c0ffee0b00c, B on another host"):
        compare_rows(rows, A, B)


def test_other_work_is_refused_and_named():
    with pytest.raises(NotComparableError, match=r"threads \(2 and 4\)"):
        compare_rows([fit(0), fit(1, threads=4)], A, B)


@pytest.mark.parametrize(
    "rows",
    [[], [fit(0)], [fit(0), fit(1, dirty=True)], [fit(0), fit(1, status="oom", message="no memory")]],
)
def test_nothing_to_compare(rows):
    with pytest.raises(NotComparableError, match="measure it first"):
        compare_rows(rows, A, B)


def test_a_control_that_was_not_measured_is_named():
    with pytest.raises(NotComparableError, match="no rows of the control catboost"):
        compare_rows([fit(0), fit(1)], A, B, control="catboost")


def test_runs_that_count_their_blocks_from_the_start_again_stay_apart():
    rows = [fit(place, slower, repeat=run) for run, slower in enumerate((1.0, 2.0)) for place in (0, 1)]
    (one,) = compare_rows(rows, A, B)
    assert one.verdict.blocks == 2
    assert one.verdict.ratio == pytest.approx(1.0)


def in_turn(rows):
    """The same rows as fits of different data by block, which take 10 % longer from one to the next."""
    changed = []
    for row in rows:
        number = row.block
        times = {name: getattr(row, name) * 1.1**number for name in ("train_s", "fit_s")}
        changed.append(row.model_copy(update={"data_hash": f"fold{number}", "data_family": "all", **times}))
    return changed


def test_blocks_on_different_data_are_one_comparison_and_each_is_of_one_data_set():
    rows = in_turn(blocks(1.0))
    (one,) = compare_rows(rows, A, B)
    assert (one.verdict.name, one.control, one.verdict.blocks) == ("same", "xgboost-depthwise", 7)
    lacking = [row for row in rows if (row.commit, row.block) not in ((A, 0), (B, 6))]
    (one,) = compare_rows(lacking, A, B)
    assert (one.verdict.name, one.verdict.blocks) == ("same", 5)


def test_a_row_of_one_data_set_is_compared_with_that_one_of_many():
    old = [row.model_copy(update={"data_family": None}) for row in in_turn(blocks(1.0)) if row.block == 0]
    new = [row for row in in_turn(blocks(1.0)) if row.commit == B]
    (one,) = compare_rows([*(row for row in old if row.commit == A), *new], A, B)
    assert one.verdict.blocks == 1
    assert one.verdict.ratio == pytest.approx(1.0, abs=0.02)
