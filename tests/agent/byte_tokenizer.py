"""A tokenizer that needs no vocabulary: a token for each byte."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from passnet.data.capture.mismatched_wheels import import_torchvision

MARKS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")


def byte_tokenizer(template: str) -> Any:
    """One token a byte, with a chat template of TRL's by its file name."""
    with suppress(ImportError):
        import_torchvision()  # transformers imports it where it is there
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from trl import chat_template_utils

    letters = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *MARKS]
    plain = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    plain.add_special_tokens(list(MARKS))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    folder = Path(chat_template_utils.__file__).parent / "chat_templates"
    tokenizer.chat_template = (folder / template).read_text(encoding="utf-8")
    return tokenizer
