"""What differs between the languages of pass folders: C++ for a CPU, Triton for CUDA."""

from dataclasses import dataclass

from passnet.errors import AuthorError
from passnet.inductor.schedule import TargetDevice
from passnet.passes.codegen import cpp_source, triton_source

CPP_PRELUDE = f'''\
@functools.cache
def kernel(source):
    return cpp.kernel(source, "{cpp_source.ENTRY}")


'''


@dataclass(frozen=True, slots=True)
class Language:
    """How kernels stand in a folder.

    `modules` is the name of the modules with sources, `head` is how each begins. `source` is how a
    source stands there and `source_name` what a pass calls it, by its number. `imports` and
    `prelude` are those of a pass; `call` gives a kernel its memory, written as `memory` for each
    tensor; `allocation` makes a tensor.
    """

    modules: str
    head: str
    source: str
    source_name: str
    imports: str
    prelude: str
    call: str
    memory: str
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
        memory="{name}",
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
        memory="{name}",
        allocation="torch.empty_strided({shape}, {stride}, dtype=torch.{dtype}, "
        "device={device}.device)",
    ),
}
"""The language of a device. Triton launches on the current stream of torch."""


def device_of(name: str) -> TargetDevice:
    """The kind of a device that kernels are generated for.

    Raises:
        AuthorError: there is no language for it.
    """
    for device in LANGUAGES:
        if name.split(":")[0] == device:
            return device
    raise AuthorError(
        f"the authors compiler and search write for {' and '.join(LANGUAGES)}, not for {name}"
    )
