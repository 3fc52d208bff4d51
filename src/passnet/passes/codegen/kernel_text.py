"""The text of kernels and of the calls in a pass: C++ for a CPU, Triton for CUDA."""

from collections.abc import Sequence
from dataclasses import dataclass

from passnet.errors import AuthorError
from passnet.inductor.generated_code import GeneratedCode
from passnet.inductor.schedule import TargetDevice
from passnet.passes.codegen import cpp_source, triton_source
from passnet.passes.codegen.triton_kernel import BlockSizes

CPP_PRELUDE = f'''\
@functools.cache
def kernel(source):
    return cpp.kernel(source, "{cpp_source.ENTRY}")


'''


@dataclass(frozen=True, slots=True)
class Language:
    """The templates of a pass folder that holds and calls kernels.

    `modules` is the name of modules with kernels, `head` their first lines, `source` a kernel's
    text there, `source_name` its name in a pass. A pass has `imports`, a `prelude` of definitions,
    the `call` of a kernel with its memory, and the `allocation` of a tensor.
    """

    modules: str
    head: str
    source: str
    source_name: str
    imports: str
    prelude: str
    call: str
    allocation: str


LANGUAGES: dict[TargetDevice, Language] = {
    "cpu": Language(
        modules="sources",
        head='"""C++ that Inductor generated, in the vocabulary of passnet."""\n',
        source='SOURCE_{number} = r"""\n{text}"""\n',
        source_name="SOURCE_{number}",
        imports="import functools\n\nimport torch\n\n{modules}\nfrom passnet.passes import cpp",
        prelude=CPP_PRELUDE,
        call="kernel({source})({memory})",
        allocation="cpp.empty_strided({shape}, {stride}, torch.{dtype})",
    ),
    "cuda": Language(
        modules="kernels",
        head='"""Triton that Inductor generated."""\n\nimport torch\nimport triton\n'
        "import triton.language as tl\n{functions}\n",
        source="{text}",
        source_name=f"{triton_source.ENTRY}_{{number}}",
        imports="import torch\n\n{modules}",
        prelude="",
        call="{source}({memory})",
        allocation="torch.empty_strided({shape}, {stride}, dtype=torch.{dtype}, "
        "device={device}.device)",
    ),
}
"""The templates of a device. Triton launches on torch's current stream."""


def kernel_text(
    code: GeneratedCode, pragmas: Sequence[str] = (), blocks: BlockSizes | None = None
) -> tuple[str, frozenset[str]]:
    """Return the text of generated kernels, and the names of our functions that it uses.

    C++ takes `pragmas`, Triton `blocks`; an unknown form, dtype or function is an AuthorError.
    """
    if code.device == "cpu":
        return cpp_source.cpp_source(code, pragmas), frozenset()
    return triton_source.triton_source(code, blocks)


def device_of(name: str) -> TargetDevice:
    """Return the kind of a device that kernels can be written for, or raise AuthorError."""
    for device in LANGUAGES:
        if name.split(":")[0] == device:
            return device
    raise AuthorError(f"kernels are written for {' and '.join(LANGUAGES)}, not for {name}")
