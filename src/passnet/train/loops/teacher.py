"""The plan of the compiler author in the loops language: its ranges, with the loops that Inductor
decides on for each.

Which ops are fused, into which nests, and what is stored between them is Inductor's; loops keep the
axes of the ops that they compute, where Inductor would merge them.
"""

from passnet.agent.authors.compiler import CompilePlan, compile_plans
from passnet.agent.authors.eager_steps import in_eager_steps
from passnet.agent.authors.lowered_ranges import GraphLowering, Options, Span, value_strides
from passnet.errors import AuthorError, CutError, GraphError, InputError
from passnet.graph.spec import Graph, refs
from passnet.mine.cut import cut_range, inferred_specs, parent_of
from passnet.train.loops.inductor_loops import inductor_loops
from passnet.train.loops.language import FusedRange
from passnet.train.loops.prompt import Prompt
from passnet.train.loops.range_memory import RangeMemory
from passnet.train.loops.range_writer import written_nests


def teacher_answer(
    prompt: Prompt, where: str = "graph", plan: CompilePlan | None = None
) -> tuple[FusedRange, ...]:
    """What the compiler author would write for a graph, by its first plan or by another.

    Raises:
        AuthorError: it would write nothing, or the language cannot say it.
    """
    plan = plan or compile_plans(prompt.graph)[0]
    spans = plan.spans
    if spans is None:
        lowering = GraphLowering(prompt.graph, where)
        spans = lowering.largest(plan.options)
        reasons = "; ".join(list(lowering.refused.values())[-1:])
        if not spans:
            raise AuthorError(f"{where}: there is nothing to compute in loops ({reasons})")
    strides = value_strides(prompt.graph)
    return tuple(_fused_range(prompt, span, strides, plan.options, where) for span in spans)


def _fused_range(
    prompt: Prompt, span: Span, strides: dict[str, tuple[int, ...]], options: Options, where: str
) -> FusedRange:
    ops = prompt.graph.program.ops
    try:
        cut = cut_range(parent_of(prompt.graph.program, prompt.specs), *span)
        by_name = {
            spec.name: strides[spec.original_name]
            for spec in cut.tensors
            if spec.original_name in strides
        }
        steps = in_eager_steps(cut, inferred_specs(cut))
        loops = inductor_loops(steps, by_name, dict(options), f"{where}{list(span)}")
        names = value_names(prompt, cut, span)
        op_names = [names.get(op.output or "") for op in steps.program.ops]
        outputs = [names[name] for arg in cut.program.outputs for name in refs(arg)]
        arguments = {spec.name: names[spec.name] for spec in cut.tensors}
        named = RangeMemory(prompt.symbols, loops, arguments, outputs, op_names)
        memory, nests = written_nests(loops, named)
    except (CutError, GraphError, InputError) as cause:
        raise AuthorError(f"{where}{list(span)}: {cause}") from cause
    first, last = (prompt.names[ops[number].output or ""] for number in (span[0], span[1] - 1))
    return FusedRange(first, last, memory, nests)


def value_names(prompt: Prompt, cut: Graph, span: Span) -> dict[str, str]:
    """The names in the prompt of the values of a range, arguments and ops, by those of the cut."""
    names = {spec.name: prompt.names[spec.original_name or ""] for spec in cut.tensors}
    for number, op in enumerate(cut.program.ops):
        original = prompt.graph.program.ops[span[0] + number].output
        if op.output is not None and original is not None:
            names[op.output] = prompt.names[original]
    return names
