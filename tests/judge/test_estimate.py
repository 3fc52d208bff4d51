"""Speedups from rounds of times: the right value on noise, and an interval that holds it."""

import numpy as np
import pytest

from passnet.judge.timing.estimate import low_mean, self_ratio, speedup


def noisy(mean_ms: float, seed: int, rounds: int = 25) -> np.ndarray:
    """Times as a shared machine gives them: a floor, small noise, and now and then a long stall."""
    random = np.random.default_rng(seed)
    stalls = random.random((rounds, 2)) < 0.3
    return mean_ms * (
        1 + 0.01 * random.random((rounds, 2)) + 3 * stalls * random.random((rounds, 2))
    )


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_the_speedup_survives_stalls(factor: float) -> None:
    result = speedup(noisy(factor, 1), noisy(1.0, 2))
    assert abs(result.value / factor - 1) < 0.01
    assert result.low <= result.value <= result.high


def test_the_interval_holds_the_truth_nearly_always() -> None:
    held = 0
    for seed in range(60):
        result = speedup(noisy(2.0, 2 * seed), noisy(1.0, 2 * seed + 1))
        held += result.low <= 2.0 * 1.002 and result.high >= 2.0 * 0.998
    assert held >= 54


def test_a_wider_noise_gives_a_wider_interval() -> None:
    random = np.random.default_rng(0)
    quiet = speedup(1 + 0.01 * random.random((25, 2)), 1 + 0.01 * random.random((25, 2)))
    loud = speedup(1 + 0.5 * random.random((25, 2)), 1 + 0.5 * random.random((25, 2)))
    assert loud.high - loud.low > 5 * (quiet.high - quiet.low)


def test_the_reference_against_itself_shows_a_drift_between_turns() -> None:
    times = noisy(1.0, 3)
    assert abs(self_ratio(times) - 1) < 0.02
    times[:, 1] *= 1.5
    assert self_ratio(times) < 0.7


def test_low_mean_takes_at_least_one_value() -> None:
    assert low_mean(np.array([3.0, 2.0])) == 2.0


def test_rounds_must_pair_up() -> None:
    with pytest.raises(ValueError, match="2 rounds of the reference, 3 of the candidate"):
        speedup(np.ones((2, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="0 rounds"):
        speedup(np.ones((0, 2)), np.ones((0, 2)))
