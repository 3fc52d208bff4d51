"""Folding: the published example, a brute-force twin, and what no folding may do."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.folding import UNLIMITED, coverage
from passnet.data.mine.folding import (
    FoldingPlan,
    Range,
    alphabet,
    fold,
    ranges,
)
from passnet.data.mine.repeats import TOKENS_WITH_INDEX, disjoint, repeated_windows
from passnet.errors import InputError

TOKENS = st.lists(st.integers(0, 3), max_size=24)
CORPUS = st.lists(TOKENS, min_size=1, max_size=4).filter(any)
LENGTHS = st.sampled_from([None, 2, 3, 5])


def windows(tokens, longest):
    """Every window of two tokens or more, with all places where it stands."""
    starts_of = {}
    for length in range(2, (longest or len(tokens)) + 1):
        for start in range(len(tokens) - length + 1):
            starts_of.setdefault(tuple(tokens[start : start + length]), []).append(start)
    return {window: starts for window, starts in starts_of.items() if len(starts) > 1}


def plain_best(tokens, longest, fits=lambda window: True):
    ranked = [
        ((len(window) - 1) * (len(starts) - 1), len(window), -starts[0], starts)
        for window, starts in windows(tokens, longest).items()
        if starts[-1] - starts[0] >= len(window) and fits(window)
    ]
    return max(ranked)[1:] if ranked else None


def plain_fold(sequences, plan):
    """Folding written as its rule reads, on one list with a separator behind each sequence."""
    tokens = []
    for number, part in enumerate(sequences):
        tokens += [*part, -1 - number]
    symbol = max(tokens) + 1
    sizes = dict.fromkeys(range(symbol), 1)

    def fits(window):
        return not plan.bounded or sum(sizes[symbol] for symbol in window) < plan.max_ops

    patterns = []
    while plan.max_patterns is None or len(patterns) < plan.max_patterns:
        best = plain_best(tokens, plan.max_length, fits)
        if best is None:
            break
        length, _, starts = best
        apart, end = [], 0
        for start in starts:
            if start >= end:
                apart.append(start)
                end = start + length
        patterns.append(tuple(tokens[apart[0] : apart[0] + length]))
        sizes[symbol] = sum(sizes[part] for part in patterns[-1])
        for start in reversed(apart):
            tokens[start : start + length] = [symbol]
        symbol += 1
    return patterns, tokens


BLOCKS = st.lists(st.sampled_from([[0, 1, 2], [0, 1], [2, 1, 3], [3], [0, 0]]), max_size=30).map(
    lambda blocks: [token for block in blocks for token in block]
)
NESTED = st.lists(BLOCKS, min_size=1, max_size=3).filter(any)
"""Sequences with patterns in patterns, which one suffix array does not decide."""


def unfolded(folded):
    """The sequences of tokens that a folded corpus came from."""
    parts = {pattern.symbol: pattern.parts for pattern in folded.patterns}

    def expanded(symbols):
        for symbol in symbols:
            yield from expanded(parts[symbol]) if symbol in parts else [symbol]

    return [list(expanded(symbols)) for symbols in folded.sequences]


@given(CORPUS | NESTED, LENGTHS, st.sampled_from([None, 1, 3]), st.sampled_from([None, 4, 9]))
@settings(max_examples=400, deadline=None)
def test_folding_is_that_of_a_plain_program(sequences, longest, most, bound):
    plan = FoldingPlan(longest, most, max_ops=bound or 64, bounded=bound is not None)
    folded = fold(sequences, plan)
    patterns, tokens = plain_fold(sequences, plan)
    assert [pattern.parts for pattern in folded.patterns] == patterns
    flat = []
    for number, symbols in enumerate(folded.sequences):
        flat += [*symbols, -1 - number]
    assert flat == tokens


@given(CORPUS)
@settings(max_examples=100, deadline=None)
def test_folding_loses_nothing_and_ends_when_nothing_repeats(sequences):
    folded = fold(sequences, UNLIMITED)
    assert unfolded(folded) == sequences
    flat = []
    for number, symbols in enumerate(folded.sequences):
        flat += [*symbols, -1 - number]
    again = [
        disjoint(np.array(starts), len(window)) for window, starts in windows(flat, None).items()
    ]
    assert all(len(starts) < 2 for starts in again)


@given(CORPUS, st.integers(1, 4), st.integers(2, 9))
@settings(max_examples=100, deadline=None)
def test_ranges_fit_do_not_overlap_and_hold_their_pattern(sequences, least, most):
    plan = FoldingPlan(None, None, least, most)
    folded = fold(sequences, plan)
    spans = list(ranges(folded, plan))
    texts = {}
    for span in spans:
        assert least <= span.stop - span.start < most
        text = tuple(sequences[span.sequence][span.start : span.stop])
        assert texts.setdefault(span.symbol, text) == text
    for first, second in zip(spans, spans[1:], strict=False):
        assert first.sequence < second.sequence or first.stop <= second.start
    assert 0 <= coverage(spans, sequences) <= 1


@given(CORPUS, st.integers(2, 6))
@settings(max_examples=150, deadline=None)
def test_bounded_patterns_have_fewer_ops_than_a_range_may_have(sequences, most):
    plan = FoldingPlan(None, None, 2, most, bounded=True)
    folded = fold(sequences, plan)
    assert unfolded(folded) == sequences
    assert all(pattern.num_ops < most for pattern in folded.patterns)
    num_covered = sum(span.stop - span.start for span in ranges(folded, plan))
    in_symbols = [symbol for symbols in folded.sequences for symbol in symbols]
    below = {pattern.symbol: pattern.num_ops for pattern in folded.patterns}
    assert num_covered == sum(below.get(symbol, 0) for symbol in in_symbols)


def test_bounding_covers_what_a_long_pattern_would_hide():
    block = [1, 2, 3, 4, 5]
    corpus = [block * 3 + [9], block * 3 + [8]]
    free = FoldingPlan(None, 1, 4, 8)
    bounded = FoldingPlan(None, 1, 4, 8, bounded=True)
    assert coverage(list(ranges(fold(corpus, free), free)), corpus) == 0
    assert coverage(list(ranges(fold(corpus, bounded), bounded)), corpus) > 0.8


def test_the_published_example():
    folded = fold([[3, 4, 5, 1, 3, 4, 5, 6, 2, 3, 4, 5, 6, 7]], FoldingPlan())
    assert [(pattern.symbol, pattern.parts) for pattern in folded.patterns] == [
        (8, (3, 4, 5)),
        (9, (8, 6)),
    ]
    assert folded.sequences == ((8, 1, 9, 2, 9, 7),)
    assert [(pattern.num_ops, pattern.count) for pattern in folded.patterns] == [(3, 3), (4, 2)]
    plan = FoldingPlan(min_ops=3, max_ops=4)
    spans = [(span.start, span.stop) for span in ranges(folded, plan)]
    assert spans == [(0, 3), (4, 7), (9, 12)]
    assert coverage(list(ranges(folded, plan)), [[0] * 14]) == 9 / 14


def test_occurrences_that_overlap_are_folded_where_two_are_disjoint():
    folded = fold([[0] * 5], FoldingPlan())
    assert unfolded(folded) == [[0] * 5]
    assert folded.patterns[0].parts == (0, 0)


def test_no_pattern_spans_two_sequences():
    folded = fold([[1, 2], [1, 2, 3], [3]], UNLIMITED)
    assert [pattern.parts for pattern in folded.patterns] == [(1, 2)]
    assert folded.sequences == ((4,), (4, 3), (3,))


def test_a_pattern_is_as_long_as_it_has_to_be():
    motif = list(range(300))
    folded = fold([motif + [999], motif + [998]], UNLIMITED)
    assert [pattern.num_ops for pattern in folded.patterns] == [300]
    assert fold([motif, motif], FoldingPlan(max_patterns=1)).patterns[0].num_ops == 64


@pytest.mark.parametrize("corpus", [[], [[]], [[], []]])
def test_an_empty_corpus_is_an_error(corpus):
    with pytest.raises(InputError, match="no op to fold"):
        fold(corpus, FoldingPlan())


def test_negative_tokens_are_an_error():
    with pytest.raises(InputError, match="token -3 is negative"):
        fold([[1, -3]], FoldingPlan())


def test_names_become_numbers_in_the_order_they_appear():
    assert alphabet([["b", "a"], ["a", "c"]]) == ([[0, 1], [1, 2]], ["b", "a", "c"])


def test_ranges_name_their_sequence():
    folded = fold([[9], [1, 2, 3, 4], [1, 2, 3, 4]], UNLIMITED)
    [first, second] = ranges(folded, FoldingPlan())
    assert (first, second.sequence) == (Range(1, 0, 4, first.symbol), 2)


@given(TOKENS.filter(bool), LENGTHS)
def test_repeats_are_the_same_where_pairs_have_no_room_for_an_index(tokens, longest):
    tokens = np.array(tokens)
    lengths = None if longest is None else np.full(len(tokens), longest)
    packed = repeated_windows(tokens, lengths)
    sorted_by_index = repeated_windows(tokens, lengths, tokens_with_index=0)
    for name in ("order", "low", "high", "length", "first", "last"):
        np.testing.assert_array_equal(getattr(sorted_by_index, name), getattr(packed, name))


@pytest.mark.slow
def test_more_tokens_than_three_numbers_of_21_bits_can_name_are_folded():
    tokens = np.tile(np.arange(700), 3200)  # as many as our captured graphs have, and some more
    assert len(tokens) > TOKENS_WITH_INDEX
    found = repeated_windows(tokens, np.full(len(tokens), 4))
    assert set(found.length.tolist()) == {2, 3, 4}
    assert (found.high - found.low).max() == 3200
