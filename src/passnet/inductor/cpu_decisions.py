"""Decisions of Inductor that passnet overrides when it generates code for a CPU.

Inductor decides for GPUs or many cores; the kernels of a pass run on few, most often on one.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

COSTLY_OPS = frozenset(
    ("erf", "erfc", "erfinv", "expm1", "lgamma", "digamma", "pow", "atan2", "sinh", "cosh")
    + ("sin", "cos", "tan", "asin", "acos", "atan", "asinh", "acosh", "atanh")
)
"""Ops whose reused results are kept, as each costs many sums. Inductor keeps only exp, log, sigmoid
and tanh on a CPU (torch/_inductor/ir.py of torch 2.13)."""

BLOCK_VALUES = 4096
"""Values in a block of rows reduced together: 16 KiB of float32, half of a first-level cache."""

LEAST_ROWS = 8
"""Fewest rows in a block: its result is written and read once more."""

LEAST_BLOCKS = 4


@contextmanager
def deciding_for_one_core() -> Iterator[None]:
    """Override Inductor's decisions as follows while it generates code for a CPU.

    - Results of `COSTLY_OPS` that are used more than once are kept.
    - A variance takes two steps, the mean and then the squared distances from it. Beyond 1,024
      values Inductor goes through them once, where each step waits for the one before.
    - A reduction along columns is done in blocks of rows that stay in the cache.
    """
    from torch._inductor import choices, ir, lowering
    from torch._inductor.codegen.common import BackendFeature
    from torch._inductor.codegen.cpp import CppScheduling

    usual = ir.StorageBox.should_realize_on_reuse

    def is_kept(self: Any, users: int, **how: Any) -> bool:
        is_reused = users > 1 and isinstance(self.data, ir.Pointwise)
        if is_reused and COSTLY_OPS & set(self.data.inner_fn_opcount().used_ops):
            return True
        return usual(self, users, **how)

    # it looks at a reduction in columns only if it has few results for so many processors
    processors = SimpleNamespace(create=lambda _: SimpleNamespace(multi_processor_count=2**40))
    features = CppScheduling.backend_features - {BackendFeature.REDUCE_TO_SINGLE_ELEMENT}
    patches = (
        (ir.StorageBox, "should_realize_on_reuse", is_kept),
        (lowering, "use_two_step_variance", lambda *_args, **_how: True),
        (CppScheduling, "backend_features", features),
        (ir, "DeviceProperties", processors),
        (choices.InductorChoices, "reduction_split_factor", staticmethod(_num_blocks)),
    )
    with ExitStack() as stack:
        for owner, name, value in patches:
            stack.enter_context(patch.object(owner, name, value))
        yield


def _num_blocks(
    _device: object, num_rows: int, num_columns: int, inner_reduction: bool, **_how: object
) -> int:
    """Return the number of row blocks of a reduction; one if its values are contiguous."""
    least = max(LEAST_ROWS, BLOCK_VALUES // max(num_columns, 1))
    if inner_reduction or num_rows < LEAST_BLOCKS * least:
        return 1
    even = (rows for rows in range(least, 2 * least) if num_rows % rows == 0)
    return -(-num_rows // next(even, least))
