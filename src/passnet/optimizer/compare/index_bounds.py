"""Between which whole numbers the arguments of a net may lie that it uses as indices.

A backend that returns something where eager torch raises an error, for an index out of
range, is right for calls whose numbers are in range. The range of an argument is that of the
example, widened to 0 and 1, and to the rows of a table among the weights if eager torch takes the
index of its last row and refuses the next.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from passnet.optimizer.call.call_check import can_be_within
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.compare.fresh_values import (
    drawn_within,
    fresh_tensors,
    may_index,
    with_number,
)

Accepts: TypeAlias = Callable[[list[torch.Tensor]], bool]
"""Whether eager torch raises no error for these tensors."""


def index_bounds(
    call: NetCall, accepts: Accepts, widens: bool = True
) -> tuple[tuple[int, int] | None, ...]:
    """For each tensor argument its smallest and largest whole number, None where it may be any.

    Args:
        call: the net and its example.
        accepts: asks eager torch.
        widens: whether to look further than the example, at a call or two for each table.

    Returns:
        Empty where an argument of whole numbers cannot be looked at in each call.
    """
    tensors = call.tensors()
    if not all(can_be_within(each) for each in tensors if may_index(each)):
        return ()
    own = tuple(_range_of(each) if may_index(each) else None for each in tensors)
    if not widens:
        return own
    tables = sorted({each.shape[0] for each in call.weights.values() if each.ndim == 2})
    bounds = tuple(
        None if each is None else _widened(call, accepts, place, each, tables)
        for place, each in enumerate(own)
    )
    is_taken = all(accepts(drawn_within(call, bounds, seed)) for seed in range(2))
    return bounds if is_taken else own


def _range_of(tensor: torch.Tensor) -> tuple[int, int]:
    return int(tensor.min()), int(tensor.max())


def _widened(
    call: NetCall, accepts: Accepts, place: int, own: tuple[int, int], tables: Sequence[int]
) -> tuple[int, int]:
    """Return the range of one argument, the others being as in the example."""

    def takes(number: int) -> bool:
        return accepts(with_number(fresh_tensors(call, 0), place, number))

    low, high = own
    if low > 0 and takes(0):
        low = 0
    if high < 1 and takes(1):
        high = 1
    for rows in tables:
        if rows > high and not takes(rows):
            return low, rows - 1 if takes(rows - 1) else high
    return low, high
