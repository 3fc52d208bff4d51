"""Which of several overlapping spans to replace, so that most is saved."""

from bisect import bisect_right
from collections.abc import Sequence


def best_disjoint(spans: Sequence[tuple[int, int, float]]) -> list[int]:
    """The numbers of the spans (start, stop, saving), no two of which overlap, whose savings add up
    to the most; in the order in which they lie.

    Weighted interval scheduling by dynamic programming, which is exact. Spans that save nothing are
    left out, as are empty ones; of equal sums it is the one with fewer spans.

    Examples:
        >>> best_disjoint([(0, 4, 3.0), (0, 2, 2.0), (2, 4, 2.0), (5, 6, -1.0)])
        [1, 2]
        >>> best_disjoint([(0, 4, 4.0), (0, 2, 2.0), (2, 4, 2.0)])
        [0]
    """
    order = sorted(
        (
            number
            for number, (start, stop, saving) in enumerate(spans)
            if start < stop and saving > 0
        ),
        key=lambda number: spans[number][1],
    )
    stops = [spans[number][1] for number in order]
    # best[count] is the most that the first spans save, how few take part, and which is the last
    best: list[tuple[float, int]] = [(0.0, 0)]
    before: list[int | None] = [None]
    for count, number in enumerate(order):
        start, _, saving = spans[number]
        earlier = bisect_right(stops, start, hi=count)
        saved, negative = best[earlier]
        taken = (saved + saving, negative - 1)
        is_better = taken > best[count]
        best.append(taken if is_better else best[count])
        before.append(earlier if is_better else None)
    chosen = []
    count = len(order)
    while count:
        earlier_count = before[count]
        if earlier_count is None:
            count -= 1
        else:
            chosen.append(order[count - 1])
            count = earlier_count
    return chosen[::-1]
