"""A net in a process with settings of torch's compilers, which a later compilation needs as set."""

import torch
import torch._dynamo.config
import torch._functorch.config
import torch._inductor.config
import torch.fx.experimental._config
from torch import nn

KIND = "process"

STATES = []

CONFIGS = {
    "dynamo": torch._dynamo.config,
    "functorch": torch._functorch.config,
    "inductor": torch._inductor.config,
    "shapes": torch.fx.experimental._config,
}


def set_all(limit, on):
    torch._dynamo.config.recompile_limit = limit
    torch._dynamo.config.suppress_errors = on
    torch._dynamo.config.capture_scalar_outputs = on
    torch._inductor.config.epilogue_fusion = not on
    torch._inductor.config.freezing = on
    torch.fx.experimental._config.use_duck_shape = not on


def make():
    set_all(3, True)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).eval()


def state(net):
    STATES.append(
        {
            f"{name}.{key}": repr(value).partition(" at 0x")[0]
            for name, config in CONFIGS.items()
            for key, value in config.get_config_copy().items()
        }
    )
    if len(STATES) == 2:  # the net was optimised
        change(net)
    return STATES[-1]


def example():
    return (torch.randn(4, 16),)


def change(net):
    set_all(8, False)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "zeros", (torch.zeros(4, 16),)
    yield "another batch", (torch.randn(5, 16),)
