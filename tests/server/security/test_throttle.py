from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from momentseek.server.security.throttle import IN_TOTAL, PER_CLIENT, WINDOW, Throttle


def test_all_clients_together_are_bounded_too() -> None:
    tries = Throttle()
    for i in range(IN_TOTAL):
        assert tries.wait(f"client {i}", 10.0) == 0
        tries.wrong(f"client {i}", 10.0)
    assert tries.wait("somebody else", 10.0) == WINDOW
    assert tries.wait("somebody else", 10.0 + WINDOW) == 0


@given(st.lists(st.tuples(st.floats(0, 20), st.sampled_from("abc")), max_size=200))
def test_nobody_is_wrong_more_often_than_allowed(steps: list[tuple[float, str]]) -> None:
    """Whoever waits as told; no window holds more wrong tries than allowed, and the wait is not for nothing."""
    tries, now = Throttle(), 0.0
    wrong: list[tuple[float, str]] = []
    for pause, client in steps:
        now += pause
        wait = tries.wait(client, now)
        recent = [who for at, who in wrong if at > now - WINDOW]
        assert (wait > 0) == (recent.count(client) >= PER_CLIENT or len(recent) >= IN_TOTAL)
        if wait:
            assert tries.wait(client, now + wait) == 0
            now += wait
        tries.wrong(client, now)
        wrong.append((now, client))
