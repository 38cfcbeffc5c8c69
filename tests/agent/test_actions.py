"""What can be done to a machine, as people read it."""

from __future__ import annotations

from headrace_agent.actions import Link, Run, Together, Unless, Write


def test_actions_are_shown_as_a_shell_would_take_them() -> None:
    assert str(Run(("a", "b c", "$x"), Unless("exists", "/x"))) == "a 'b c' '$x'  # unless exists: /x"
    assert str(Write("/sys/x", "a b\n")) == "echo 'a b' > /sys/x"
    assert str(Write("/sys/x", "1")) == "echo -n 1 > /sys/x"
    assert str(Link("/a", "/b c")) == "ln -s /a '/b c'  # unless exists: /b c"
    assert str(Together((Run(("a",)), Run(("b",), Unless("exists", "/x"))))) == "a &\nb &  # unless exists: /x\nwait"
