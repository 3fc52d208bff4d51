"""Attention by hand in small graphs: what Inductor fuses, and the reason where it does not."""

import pytest
import torch
import torch._inductor.config
from torch._dynamo.utils import counters

from benchmarks.lost_fusions import WRONG, Found, Tried, attentions_of, status
from passnet.graph.fx.build import build
from tests.data.mine.test_fusion import graph

SIZES = {"x": (2, 16, 4, 8), "y": (2, 16, 4, 8), "z": (2, 16, 4, 8)}
MASK = {"m": (2, 1, 16, 16)}
LAST = "torch.nn.functional.softmax(s, dim=-1)"
SWAPPED = "k = k.transpose(-2, -1)\n"
FILLED = "s = s / 8.0\nh = m > 0\ns = s.masked_fill(h, -1e9)\n"
PRODUCT = "o = torch.matmul(w, v)\n"


def attention(
    scaled="s = s / 8.0\n",
    before="",
    swapped=SWAPPED,
    scores="s = torch.matmul(q, k)\n",
    softmax=LAST,
    after="",
    output=PRODUCT,
    returned="(o,)",
    **more,
):
    """Return a graph with one attention; without arguments it is one that Inductor fuses."""
    lines = "".join(
        f"{name} = torch.sin({source})\n{name} = {name}.permute(0, 2, 1, 3)\n"
        for name, source in zip("qkv", "xyz", strict=True)
    )
    lines += f"{before}{swapped}{scores}{scaled}w = {softmax}\n{after}{output}return {returned}"
    return graph(lines, **SIZES, **more)


def outcome(case, training=False):
    """Return whether the one attention of a graph is fused, and the reason if not."""
    [found] = attentions_of(case, training, Tried()).outcomes
    return found.fused, found.reason


FOLDED = "q = q.reshape(8, 16, 8)\nk = k.reshape(8, 16, 8)\nv = v.reshape(8, 16, 8)\n"
BMM = "s = torch.bmm(q, k)\n"
UNFOLDED = "o = torch.bmm(w, v)\no = o.view(2, 4, 16, 8)\n"

COMPILING = {"force_disable_caches": True, "cpp_cache_precompile_headers": False}

FUSED = {
    "divided": attention(),
    "multiplied": attention("s = s * 0.3\n"),
    "not scaled": attention(""),
    "mask": attention("s = s / 8.0\ns = s + m\n", **MASK),
    "folded heads, mask between views": attention(
        "s = s.view(2, 4, 16, 16)\ns = s + m\ns = s.view(8, 16, 16)\n",
        before=f"q = q * 0.3\n{FOLDED}",
        scores=BMM,
        output=UNFOLDED,
        **MASK,
    ),
    "dropout in use": attention(after="w = torch.nn.functional.dropout(w, 0.1, False)\n"),
}

LOST = {
    "scale multiplied before a mask": (
        ("scale",),
        attention("s = s * 0.3\ns = s + m\n", **MASK),
    ),
    "scale on the query": (("scale",), attention("", before="q = q * 0.3\n")),
    "scale in a tensor": (("scale",), attention("s = s * t\n", t=(1,))),
    "key not swapped last": (
        ("layout",),
        attention(swapped="k = torch.sin(y)\nk = k.permute(0, 2, 3, 1)\n", before="v = v\n"),
    ),
    "einsum": (
        ("layout",),
        attention(
            swapped="",
            scores="s = torch.functional.einsum('bhid,bhjd->bhij', q, k)\n",
            output="o = torch.functional.einsum('bhij,bhjd->bhid', w, v)\n",
        ),
    ),
    "heads in the batch": (
        ("layout",),
        attention(
            before=FOLDED,
            scores=BMM,
            output="o = torch.bmm(w, v)\n",
        ),
    ),
    "mask filled": (("mask",), attention(FILLED, **MASK)),
    "weights returned": (("weights_used",), attention(returned="(o, w)")),
    "another op": (("others",), attention("s = s / 8.0\ns = torch.tanh(s)\n")),
}


@pytest.mark.parametrize("name", FUSED)
def test_inductor_fuses_the_forms_that_it_knows(name):
    assert outcome(FUSED[name]) == (True, ())


@pytest.mark.parametrize("name", LOST)
def test_a_fusion_that_is_lost_has_the_reason_that_was_put_in(name):
    reason, case = LOST[name]
    assert outcome(case) == (False, reason)


def test_dropout_is_a_reason_where_it_drops_and_no_gradient_is_there():
    dropping = attention(after="w = torch.nn.functional.dropout(w, 0.1, True)\n")
    assert outcome(dropping) == (False, ("dropout",))
    assert outcome(dropping, training=True) == (True, ())


def test_a_product_with_a_weight_and_a_softmax_without_values_are_no_attention():
    routed = attention(scores="u = x.permute(0, 2, 3, 1)\ns = torch.matmul(q, u)\n")
    alone = attention(output="o = torch.relu(w)\n")
    for case in (routed, alone):
        assert not attentions_of(case, False, Tried()).outcomes


def test_a_softmax_along_another_axis_that_inductor_fuses_is_counted_apart():
    across = attention(softmax=LAST.replace("-1", "-2"))
    [found] = attentions_of(across, False, Tried()).outcomes
    assert status(found) == WRONG


def test_calls_are_counted_and_a_structure_is_tried_once():
    call = "o = torch._C._nn.scaled_dot_product_attention(q, k, v)\n"
    case = attention("", swapped="", scores="", softmax="torch.relu(q)", output=call)
    assert attentions_of(case, False, Tried()) == Found(1)
    tried = Tried()
    first = attentions_of(FUSED["divided"], False, tried)
    assert first.outcomes and attentions_of(FUSED["divided"], False, tried) == first
    assert len(tried.outlines) == len(tried.windows) == 1


@pytest.mark.parametrize(
    "case",
    [FUSED["divided"], LOST["mask filled"][1], LOST["einsum"][1]],
    ids=["fused", "mask", "einsum"],
)
@pytest.mark.slow
def test_the_count_is_that_of_torch_compile(case):
    module = build(case.program)
    torch._dynamo.reset()
    counters.clear()
    with torch.no_grad(), torch._inductor.config.patch(COMPILING):
        compiled = torch.compile(module)
        compiled(*(torch.rand(spec.shape) for spec in case.tensors))
    assert counters["inductor"]["fuse_attention"] == outcome(case)[0]
