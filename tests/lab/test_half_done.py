"""Documents that were cut off at any moment: repeated they finish, and undone they leave nothing."""

from __future__ import annotations

from tests.lab.layouts import STRIPED, configs
from tests.lab.machines import Lab
from tests.lab.test_smoke import CHECK, COMPUTE, STORAGE, fill

CUT_SECONDS = (1.5, 3.0, 5.0)
CUT = "timeout -s KILL {seconds} headrace-agent {command}; true"


def test_what_is_cut_off_is_undone_whole(lab: Lab) -> None:
    lab.configure(configs(STRIPED, "roce"))
    for seconds in CUT_SECONDS:
        lab.on(STORAGE, CUT.format(seconds=seconds, command="configure"))
        lab.document("release-node", *STORAGE)
        assert lab.left(*STORAGE) == {}, f"cut off after {seconds} s"


def test_what_is_cut_off_again_and_again_finishes_when_repeated(lab: Lab) -> None:
    lab.configure(configs(STRIPED, "tcp"))
    for seconds in CUT_SECONDS:
        lab.on(STORAGE, CUT.format(seconds=seconds, command="configure"))
    lab.document("configure-storage", *STORAGE)
    sums = fill(lab, *STORAGE)
    for seconds in CUT_SECONDS:
        lab.on(STORAGE, CUT.format(seconds=seconds, command="seal"))
    lab.document("seal-dataset", *STORAGE)
    for seconds in CUT_SECONDS:
        lab.on(COMPUTE, CUT.format(seconds=seconds, command="configure"))
    lab.document("configure-compute", *COMPUTE)
    assert {node: text.splitlines() for node, text in lab.on(COMPUTE, CHECK).items()} == dict.fromkeys(COMPUTE, sums)
    lab.document("release-node", *COMPUTE)
    lab.document("release-node", *STORAGE)
    assert lab.left() == {}
