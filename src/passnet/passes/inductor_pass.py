"""Pass folders inside stock `torch.compile`, as a pass of Inductor beside those of others."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
import torch.fx

from passnet.core.hardware import this_hardware
from passnet.errors import InputError
from passnet.inductor.compiler import dynamo_settings
from passnet.inductor.graph_pass import CustomGraphPass, pass_added
from passnet.passes.apply.custom_op import kernel_ops_of, op_of, wrap_sites
from passnet.passes.apply.packed_op import load_op
from passnet.passes.apply.packed_products import pack_products
from passnet.passes.apply.rewrite import PassReport, apply_passes
from passnet.passes.apply.written_attention import fuse_attention
from passnet.passes.backend import (
    library_passes,
    log_reports,
    stays,
    without_bare_kernels,
)
from passnet.passes.kernel_list import known_kernels
from passnet.passes.load import Folders, loaded_passes
from passnet.passes.match.pattern import Pass
from passnet.version import __version__


class InductorPass(CustomGraphPass):
    """Passes for Inductor's `pre_grad_custom_pass`, alone or in a list with others.

    A replacement that consists of torch ops and C++ kernels is inlined: Inductor fuses its torch
    ops with what is around them, and calls a kernel without Python in between. Others are ops of
    torch, too; a cached graph finds all ops in another process by name. Where a
    guard fails, the graph stays. `reports` are of the graphs so far, a list each.

    Args:
        passes: a pass folder, or several in order.
        library: a library of judged passes, whose winners on this hardware come after them.
        packed_weights: pack the weights of products and convolutions at the first call, and again
            once they were written, instead of at each call, and call torch's kernel for attention
            that is written out (float32 on a CPU).
        weight_bits: round these weights of products to 8 or 4 bits, and the rows to 8, or to
            bfloat16 where they are more than a few; 32 rounds nothing.

    Raises:
        InputError: none of them is given, a folder is malformed, or bits are others.
        PassError: weights cannot be packed here.
    """

    def __init__(
        self,
        passes: Folders | None = None,
        library: str | Path | None = None,
        packed_weights: bool = False,
        weight_bits: int = 32,
    ) -> None:
        if weight_bits not in (4, 8, 32) or (weight_bits < 32 and not packed_weights):
            raise InputError("weight_bits are 8 or 4, of packed_weights=True, or 32")
        loaded = loaded_passes(passes)
        if library is not None:
            loaded += library_passes(Path(library), "cuda" if torch.cuda.is_available() else "cpu")
        if passes is None and library is None and not packed_weights:
            raise InputError(
                "give passes, a folder or several; library, a folder of passes; or packed_weights"
            )
        self.passes = without_bare_kernels(loaded)
        self.reports: list[list[PassReport]] = []
        self.num_fused = self.num_packed = 0
        self._packs = f"{load_op()} {weight_bits}" if packed_weights else ""
        self._weight_bits = weight_bits
        ready = [pass_ for pass_ in self.passes if isinstance(pass_, Pass)]
        names: list[str] = []
        for pass_ in ready:  # whose ops a cached graph may call
            op_of(pass_)
            names.append(f"{pass_.name} {pass_.digest}")
            names += sorted(str(op) for op in kernel_ops_of(pass_))
        hardware = this_hardware(torch.get_num_threads())  # which guards may look at
        self._facts = (__version__, hardware.text, self._packs, *names)
        self._digests = sorted({pass_.digest for pass_ in ready if not pass_.kernel_ops})
        self.uuid()  # a graph may be loaded without a look at it

    def __call__(self, graph: torch.fx.Graph) -> None:
        """Rewrite a graph of Dynamo in place."""
        module = graph.owning_module
        params = [node for node in graph.nodes if node.op == "placeholder"]
        examples = [node.meta.get("example_value", node.meta.get("val")) for node in params]
        if stays(graph, examples):
            return
        assert module is not None, "Inductor passes the graph of a module"
        reports, sites = apply_passes(module, self.passes, examples)
        wrap_sites(module, sites, examples, sees_through=True, is_cached=True)
        if self._packs:
            self.num_fused += fuse_attention(module)
            self.num_packed += pack_products(module, self._weight_bits)
        self.reports.append(reports)
        log_reports(reports)

    def uuid(self) -> str:
        """Return what Inductor's caches know the passes by: content, version, processor, kernels.

        It makes the ops that cached graphs may call, those of other processes since too.
        """
        text = "\n".join((*self._facts, *map(known_kernels, self._digests)))
        return f"passnet-{hashlib.sha256(text.encode()).hexdigest()}"

    @property
    def num_matches(self) -> int:
        """The number of matches in all graphs."""
        return sum(report.num_matches for reports in self.reports for report in reports)


@contextmanager
def passes_in_inductor(
    passes: Folders | None = None,
    library: str | Path | None = None,
    packed_weights: bool = False,
    weight_bits: int = 32,
) -> Iterator[InductorPass]:
    """Add passes to Inductor within a context, after those of others.

    `torch.compile` compiles at the first call, so that belongs within too.

    Raises:
        InputError: as of `InductorPass`.
    """
    own = InductorPass(passes, library, packed_weights, weight_bits)
    # or Dynamo ends its graph before a recurrent layer
    recurrent = dynamo_settings(allow_rnn=True) if packed_weights else nullcontext()
    with pass_added(own), recurrent:
        yield own
