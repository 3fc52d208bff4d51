"""The plan of the author `compiler` in the loops language.

Inductor decides which ops are fused, into which nests, and what is stored between them. Loops keep
the axes of their ops where Inductor would merge them.
"""

from passnet.agent.authors.compiler import CompilePlan, compile_plans
from passnet.data.mine.cut import inferred_specs
from passnet.errors import AuthorError, CutError, GraphError, InputError
from passnet.inductor.loops import inductor_loops
from passnet.passes.codegen.eager_steps import in_eager_steps
from passnet.passes.codegen.lowered_ranges import GraphLowering, Options, Span
from passnet_loops.language.language import FusedRange
from passnet_loops.language.nests.range_memory import RangeMemory
from passnet_loops.language.nests.range_writer import written_nests
from passnet_loops.language.prompt import Prompt


def teacher_answer(
    prompt: Prompt, where: str = "graph", plan: CompilePlan | None = None
) -> tuple[FusedRange, ...]:
    """Return the answer of the author `compiler`, by its first plan or another.

    Raises:
        AuthorError: It writes nothing, or the language cannot express it.
    """
    plan = plan or compile_plans(prompt.graph)[0]
    spans = plan.spans
    if spans is None:
        lowering = GraphLowering(prompt.graph, where)
        spans = lowering.largest(plan.options)
        reasons = "; ".join(list(lowering.refused.values())[-1:])
        if not spans:
            raise AuthorError(f"{where}: there is nothing to compute in loops ({reasons})")
    return tuple(_fused_range(prompt, span, plan.options, where) for span in spans)


def _fused_range(prompt: Prompt, span: Span, options: Options, where: str) -> FusedRange:
    ops, strides = prompt.graph.program.ops, prompt.strides
    try:
        prompt_range = prompt.range(span)
        cut, names = prompt_range.cut, prompt_range.names
        by_name = {
            spec.name: strides[spec.original_name]
            for spec in cut.tensors
            if spec.original_name in strides
        }
        steps = in_eager_steps(cut, inferred_specs(cut))
        loops = inductor_loops(steps, by_name, dict(options), f"{where}{list(span)}")
        op_names = [names.get(op.output or "") for op in steps.program.ops]
        arguments = {spec.name: names[spec.name] for spec in cut.tensors}
        named = RangeMemory(prompt.symbols, loops, arguments, prompt_range.results, op_names)
        memory, nests = written_nests(loops, named)
    except (CutError, GraphError, InputError) as cause:
        raise AuthorError(f"{where}{list(span)}: {cause}") from cause
    first, last = (prompt.names[ops[number].output or ""] for number in (span[0], span[1] - 1))
    return FusedRange(first, last, memory, nests)
