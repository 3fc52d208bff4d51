"""fair_esm: language models of proteins."""

import argparse
import importlib
from typing import Any

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.net import Net, tokens

ADDS = "language models of proteins, of one and of aligned ones: attention by row and column"
PACKAGES = ("fair-esm",)

LAYERS, LENGTH, ROWS = 4, 64, 8

ESM2 = {
    "esm2-8m": (320, 20), "esm2-35m": (480, 20), "esm2-150m": (640, 20), "esm2-650m": (1280, 20),
    "esm2-3b": (2560, 40), "esm2-15b": (5120, 40),
}  # fmt: skip
"""Published sizes: width and heads."""

ENDINGS = ("", "-contacts", "-attention")
OTHERS = ("esm1", "esm1b", "msa-transformer", "msa-transformer-contacts", "esm1-contacts")


def _alphabet(kind: str) -> Any:
    return importlib.import_module("esm.data").Alphabet.from_architecture(kind)


names = listed(
    "esm", [*(size + end for size in ESM2 for end in ENDINGS), *OTHERS], importlib.import_module
)
"""Nets that read proteins; some also return contacts or attention."""


def build(name: str) -> Net:
    """Build a net of the published width with four layers, on a protein of 64 residues."""
    contacts, weights = name.endswith("-contacts"), name.endswith("-attention")
    plain = name.removesuffix("-contacts").removesuffix("-attention")
    changes = (f"num_layers -> {LAYERS}",)
    shape, axes = (2, LENGTH), ("batch", "sequence")
    if plain in ESM2:
        width, heads = row_of(ESM2, plain)
        net_class = importlib.import_module("esm.model.esm2").ESM2
        net = net_class(LAYERS, width, heads, _alphabet("ESM-1b"))
    elif plain == "msa-transformer":
        module = importlib.import_module("esm.model.msa_transformer")
        args = argparse.Namespace(
            layers=LAYERS, embed_dim=768, ffn_embed_dim=3072, attention_heads=12, dropout=0.1,
            attention_dropout=0.1, activation_dropout=0.1, max_tokens_per_msa=2**14,
            max_tokens=2**14, max_positions=1024, embed_positions_msa=True,
            embed_positions_msa_dim=768, logit_bias=True,
        )  # fmt: skip
        net = module.MSATransformer(args, _alphabet("msa_transformer"))
        shape, axes = (1, ROWS, LENGTH), ("batch", "alignment", "sequence")
    else:
        module = importlib.import_module("esm.model.esm1")
        args = argparse.Namespace(
            arch="protein_bert_base" if plain == "esm1" else "roberta_large", layers=LAYERS,
            embed_dim=1280, ffn_embed_dim=5120, attention_heads=20, max_positions=1024,
            emb_layer_norm_before=True, token_dropout=True, logit_bias=True, final_bias=True,
        )  # fmt: skip
        net = module.ProteinBertModel(args, _alphabet("ESM-1" if plain == "esm1" else "ESM-1b"))
    residues = tokens(24, *shape, axes=axes)
    kwargs = {}
    if contacts or weights:
        from passnet.data.capture.net import NetInput

        kwargs = {"return_contacts" if contacts else "need_head_weights": NetInput(True)}
    task = "contact-prediction" if contacts else "protein-language-modeling"
    return Net(net.eval(), (residues,), kwargs, domain="other", task=task, changes=changes)
