"""A host that cannot prove who it is stays outside, where the guest's kernel has DH-HMAC-CHAP; Debian 12's has not.

APT_CONFIG may name another suite to take the kernel from.
"""

from __future__ import annotations

import pytest

from headrace.domain.fabric_names import host_nqn
from headrace.domain.host_keys import host_key
from tests.lab import private
from tests.lab.machines import PLACES, Lab
from tests.lab.private import STORAGE
from tests.lab.test_private import SCRATCH

DEMANDED = "ls /sys/kernel/config/nvmet/hosts/*/dhchap_key 2>/dev/null | wc -l"
SEEN = "cat /proc/*/cmdline /var/lib/headrace/spool/* /var/lib/headrace/state/configured.json; dmesg"


def test_a_host_without_the_right_key_is_refused_and_no_key_is_seen_anywhere(lab: Lab) -> None:
    lab.configure(private.configs("tcp", 0))
    said = lab.document("configure-storage", *STORAGE)["s0"].output
    if int(lab.run("s0", DEMANDED)) == 0:
        pytest.skip(f"the guest's kernel {lab.run('s0', 'uname -r').strip()} was built without NVME_TARGET_AUTH")
    wrong = host_key("00" * 32, host_nqn(PLACES["c0"].row()))
    lab.run("c0", f"nvme check-dhchap-key --key={wrong}")
    for shown in ("", f"--dhchap-secret={wrong}"):
        assert lab.attempt("c0", connect(shown)).code, f"admitted with {shown or 'no key'}"
    said += lab.document("configure-compute", "c0", "c1")["c0"].output
    for name in ("c0", "c1"):
        lab.run(name, f"grep -q ' {SCRATCH} ' /proc/mounts && echo {name} > {SCRATCH}/who && sync")
    assert "dhchap_secret=key(192.168.77.11)" in said
    assert "DHHC-1" not in said + lab.run("c0", SEEN) + lab.run("s0", SEEN)


def connect(more: str) -> str:
    own = host_nqn(PLACES["c0"].row())
    return (
        f"modprobe nvme-tcp; timeout 60 nvme connect --transport=tcp --traddr={PLACES['s0'].row().address} "
        f"--trsvcid=4420 --nqn={private.nqn('c0', 's0')} --hostnqn={own} --hostid={own.rsplit(':', 1)[1]} {more}"
    )
