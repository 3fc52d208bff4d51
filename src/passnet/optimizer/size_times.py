"""Times of calls at several sizes: geometric means, and which backend is fastest where."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import exp, log

from passnet.judge.timing.estimate import Speedup
from passnet.judge.timing.rounds import RoundTimes


@dataclass(frozen=True, slots=True)
class SizeTimes:
    """The rounds of the same calls at each size, and the name of the call that is the reference."""

    rounds: tuple[RoundTimes, ...]
    reference: str

    @property
    def names(self) -> Collection[str]:
        """The names of the calls."""
        return self.rounds[0].turns.keys()

    def ms(self, name: str) -> float:
        """Return the time of a call: the geometric mean over sizes."""
        return self.fastest_ms([name] * len(self.rounds))

    def fastest_ms(self, names: Sequence[str]) -> float:
        """Return the geometric mean of the times of one call for each size."""
        return _mean([rounds.ms(name) for rounds, name in zip(self.rounds, names, strict=True)])

    def speedup(self, name: str) -> Speedup:
        """Return the speedup of a call: geometric means over sizes, of its ends too."""
        return self.fastest_speedup([name] * len(self.rounds))

    def fastest_speedup(self, names: Sequence[str]) -> Speedup:
        """Return the mean speedup of one call for each size."""
        pairs = zip(self.rounds, names, strict=True)
        all_of = [rounds.speedup(name, over=self.reference) for rounds, name in pairs]
        if len(all_of) == 1:
            return all_of[0]
        value, low, high = zip(*((one.value, one.low, one.high) for one in all_of), strict=True)
        return Speedup(_mean(value), _mean(low), _mean(high))

    def fastest_somewhere(self, names: Collection[str], gain: float) -> set[str]:
        """Return the calls that are so many times as fast as all others at some size."""
        found = set()
        for rounds in self.rounds:
            ms = sorted((rounds.ms(name), name) for name in names)
            if len(ms) > 1 and ms[1][0] >= gain * ms[0][0]:
                found.add(ms[0][1])
        return found

    def are_steady(self, max_width: float, max_drift: float) -> bool:
        """Return whether intervals are narrower than a share of their speedups, and first turns
        differ from second ones by less than another.
        """
        for rounds in self.rounds:
            for name in rounds.turns:
                speedup = rounds.speedup(name, over=self.reference)
                if speedup.high - speedup.low > max_width * speedup.value:
                    return False
                if abs(rounds.self_ratio(name) - 1) > max_drift:
                    return False
        return True


def _mean(values: Sequence[float]) -> float:
    return values[0] if len(values) == 1 else exp(sum(map(log, values)) / len(values))
