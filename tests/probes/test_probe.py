from probes.probe import HOST_PROBES, PROBES, chosen


def test_names_are_unique():
    assert len({probe.name for probe in PROBES}) == len(PROBES)


def test_a_cpu_is_asked_nothing_of_a_gpu():
    assert {probe.needs for probe in chosen("cpu", quick=False)} == {"host"}
    assert chosen("cpu", quick=False) == HOST_PROBES
    assert chosen("gpu", quick=False) == PROBES


def test_a_quick_probe_is_a_part_of_the_full_one():
    for target in ("cpu", "gpu"):
        quick, full = chosen(target, quick=True), chosen(target, quick=False)
        assert set(quick) < set(full)
        # One child, so one start of CUDA: the flags cost a process each.
        assert {probe.schedule for probe in quick} == {"auto"}


def test_the_limits_are_seconds_of_the_whole():
    assert all(0 < probe.limit_s <= 10 for probe in PROBES)
