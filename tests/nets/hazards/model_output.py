"""A small llm of transformers that returns a ModelOutput with a cache for the next call."""

import torch

KIND = "form"
NEEDS = ("transformers",)


def make():
    from passnet.data.capture.mismatched_wheels import import_torchvision

    import_torchvision()
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    return LlamaForCausalLM(config).eval()


def example():
    return {"input_ids": torch.randint(0, 64, (1, 6)), "use_cache": True}


def cached(net):
    output = net(input_ids=torch.arange(6)[None], use_cache=True)
    cache = output.past_key_values
    first = output.logits, cache.get_seq_length()
    output = net(input_ids=torch.tensor([[9]]), past_key_values=cache, use_cache=True)
    is_same = output.past_key_values is cache
    return first, output.logits, is_same, cache.get_seq_length(), list(output.keys())


def shared(net):
    cache = net(input_ids=torch.arange(6)[None], use_cache=True).past_key_values
    layer = cache.layers[1]
    return layer.keys.contiguous(), layer.values.contiguous(), type(cache).__name__


def calls():
    ids = torch.randint(0, 64, (1, 6))
    yield "without a cache", lambda net: net(input_ids=ids, use_cache=False).logits
    yield "hidden states", lambda net: net(input_ids=ids, output_hidden_states=True).hidden_states
    yield "a tuple", lambda net: net(input_ids=ids, return_dict=False, use_cache=False)
    yield "a step with the cache", cached
    yield "keys and values", shared
    yield (
        "a batch with padding",
        {
            "input_ids": torch.randint(0, 64, (2, 6)),
            "attention_mask": torch.tensor([[1] * 6, [0, 0, 1, 1, 1, 1]]),
            "use_cache": False,
        },
    )
    yield "refused: ids and embeddings", {"input_ids": ids, "inputs_embeds": torch.zeros(1, 6, 32)}
