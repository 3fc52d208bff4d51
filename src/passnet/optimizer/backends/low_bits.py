"""AOTInductor with the weights of products in 8 or 4 bits, packed once and watched.

A row is rounded to 8 bits as well, for which the processor has whole numbers; more rows than a few
are computed in bfloat16 (`passes/include/packed/low_bit_products.h`).
"""

import copy
from collections.abc import Mapping
from typing import Any

import torch
import torch.fx
from torch.export import ExportedProgram

from passnet.errors import BackendError
from passnet.optimizer.backends.aot import packed_backend
from passnet.optimizer.backends.backend import Backend
from passnet.optimizer.decoding.fused_attention import fuse_attention_of_parts
from passnet.optimizer.record import Precision
from passnet.passes.apply.packed_op import load_op
from passnet.passes.apply.packed_products import product_form

_ATEN = torch.ops.aten


def low_bit_program(program: ExportedProgram, bits: int) -> ExportedProgram:
    """Return a program whose products by weights of float32 take them in fewer bits, and where
    the attention of a decoder's step is one op.

    Raises:
        BackendError: there is no such product.
    """
    load_op()
    made = copy.copy(program)
    made._graph_module = copy.deepcopy(program.graph_module)
    made._graph_signature = signature = copy.deepcopy(program.graph_signature)
    graph = made.graph_module.graph
    held = {*signature.inputs_to_parameters, *signature.inputs_to_buffers}
    with made.graph_module._set_replace_hook(signature.get_replace_hook()):  # renames outputs
        nodes = [node for node in graph.nodes if _put(graph, node, held, bits)]
    if not nodes:
        raise BackendError("the graph has no product by weights in float32")
    for node in nodes:
        graph.erase_node(node)
    fuse_attention_of_parts(graph)
    graph.lint()
    made.graph_module.recompile()
    return made


def _put(graph: torch.fx.Graph, node: Any, held: set[str], bits: int) -> bool:
    """Put a product in fewer bits beside a node that is one; return whether it is."""
    if node.target is _ATEN.linear.default:
        x, weight, bias = (*node.args, None)[:3]
    elif node.target is _ATEN.addmm.default and not node.kwargs:  # its weights lie the other way
        bias, x, weight = node.args
    else:
        return False
    if not _is_weight(weight, held, 2) or not _is_weight(bias, held, 1) and bias is not None:
        return False
    if x.meta["val"].dtype is not torch.float32:
        return False
    with graph.inserting_before(node):
        if node.target is _ATEN.addmm.default:
            value = weight.meta["val"].t()
            weight = graph.call_function(_ATEN.t.default, (weight,))
            weight.meta["val"] = value
        weights = [weight] if bias is None else [weight, bias]
        form = product_form(len(weights) > 1, bits)
        product = torch.ops.passnet_packed.product.default
        made = graph.call_function(product, (x, weights, None, form))
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    return True


def _is_weight(node: Any, held: set[str], rank: int) -> bool:
    if not isinstance(node, torch.fx.Node) or node.target not in held:
        return False
    value = node.meta["val"]
    is_plain = value.dtype is torch.float32 and value.device.type == "cpu"
    return is_plain and value.dim() == rank and value.is_contiguous()


def _low_bits(bits: int, precision: Precision, is_frozen: bool = False) -> Backend:
    return packed_backend(
        f"AOTInductor, weights packed once in {bits} bits",
        lambda call: low_bit_program(call.exported_flat, bits),
        is_frozen=is_frozen,
        precision=precision,
    )


BACKENDS: Mapping[str, Backend] = {
    "aot_int8": _low_bits(8, "int8"),
    "aot_int8_frozen": _low_bits(8, "int8", is_frozen=True),
    "aot_int4": _low_bits(4, "int4"),
    "aot_int4_frozen": _low_bits(4, "int4", is_frozen=True),
}
