from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from momentseek.server.security.sessions import MAX_WRONG_IN_TOTAL, MAX_WRONG_PER_CLIENT, WINDOW_SECONDS, Throttle


def test_all_clients_together_are_bounded_too() -> None:
    tries = Throttle()
    for i in range(MAX_WRONG_IN_TOTAL):
        assert tries.seconds_to_wait(f"client {i}", 10.0) == 0
        tries.note_wrong(f"client {i}", 10.0)
    assert tries.seconds_to_wait("somebody else", 10.0) == WINDOW_SECONDS
    assert tries.seconds_to_wait("somebody else", 10.0 + WINDOW_SECONDS) == 0


@given(st.lists(st.tuples(st.floats(0, 20), st.sampled_from("abc")), max_size=200))
def test_nobody_is_wrong_more_often_than_allowed(steps: list[tuple[float, str]]) -> None:
    """Whoever waits as told; no window holds more wrong tries than allowed, and the wait is not for nothing."""
    tries, now = Throttle(), 0.0
    wrong: list[tuple[float, str]] = []
    for pause, client in steps:
        now += pause
        wait = tries.seconds_to_wait(client, now)
        recent = [who for at, who in wrong if at > now - WINDOW_SECONDS]
        assert (wait > 0) == (recent.count(client) >= MAX_WRONG_PER_CLIENT or len(recent) >= MAX_WRONG_IN_TOTAL)
        if wait:
            assert tries.seconds_to_wait(client, now + wait) == 0
            now += wait
        tries.note_wrong(client, now)
        wrong.append((now, client))


def test_strangers_cannot_lock_out_a_client_that_had_the_token() -> None:
    tries = Throttle()
    tries.note_right("a friend")
    for i in range(MAX_WRONG_IN_TOTAL):
        tries.note_wrong(f"client {i}", 10.0)
    assert (tries.seconds_to_wait("a friend", 10.0), tries.seconds_to_wait("a stranger", 10.0)) == (0, WINDOW_SECONDS)
    for _ in range(MAX_WRONG_PER_CLIENT):
        tries.note_wrong("a friend", 10.0)
    assert tries.seconds_to_wait("a friend", 10.0) == WINDOW_SECONDS
