"""A small llm of transformers with the methods of its class: generate, embeddings, resizing."""

import torch

KIND = "interface"
NEEDS = ("transformers",)


def make():
    from passnet.data.capture.mismatched_wheels import import_torchvision

    import_torchvision()
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=48,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        use_cache=False,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


def example():
    return {"input_ids": torch.randint(3, 48, (1, 6))}


def greedy(net):
    return net.generate(torch.tensor([[5, 7, 9]]), max_new_tokens=5, do_sample=False)


def sampled(net):
    torch.manual_seed(3)
    return net.generate(torch.tensor([[5, 7, 9]]), max_new_tokens=5, do_sample=True, top_k=0)


def resized(net):
    net.resize_token_embeddings(50)
    return list(net(input_ids=torch.tensor([[5, 7, 49]])).logits.shape), net.config.vocab_size


def configured(net):
    net.config.use_cache = True
    return list(net(input_ids=torch.tensor([[5, 7, 9]])).keys())


def calls():
    ids = torch.randint(3, 48, (1, 6))
    yield "fresh", {"input_ids": ids}
    yield "a loss", {"input_ids": ids, "labels": ids}
    yield "greedy", greedy
    yield "sampled", sampled
    yield "sizes", lambda net: (net.num_parameters(), str(net.dtype), str(net.device))
    yield "embeddings", lambda net: net.get_input_embeddings()(ids)
    yield "the base model", lambda net: net.base_model_prefix
    yield "another configuration", configured
    yield "resized", resized
