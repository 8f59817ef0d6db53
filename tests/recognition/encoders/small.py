"""Tokenizers and photographs for models with random weights."""

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = ["a man opens the door", "two dogs run through the snow", "a photo of a cat", "the woman drinks coffee"]


def clip_tokenizer():
    """Byte-level BPE between two marks, as CLIP's."""
    found = Tokenizer(models.BPE(unk_token="<|endoftext|>"))
    found.normalizer = normalizers.Lowercase()
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    marks = ["<|startoftext|>", "<|endoftext|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    found.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(vocab_size=300, special_tokens=marks, initial_alphabet=alphabet, show_progress=False),
    )
    found.post_processor = processors.TemplateProcessing(
        single="<|startoftext|> $A <|endoftext|>", special_tokens=[(mark, at) for at, mark in enumerate(marks)]
    )
    return found


def siglip_tokenizer():
    """Unigram with an end mark, as SigLIP's; it does not lower the case by itself, as SigLIP 2's."""
    found = Tokenizer(models.Unigram())
    found.pre_tokenizer = pre_tokenizers.Metaspace()
    found.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(
            vocab_size=80, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
        ),
    )
    found.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return found


def gemma_tokenizer():
    """Whole words between Gemma's marks, in its order; it does not lower the case, and it ends with ``<eos>``."""
    words = ["<pad>", "<eos>", "<bos>", "<unk>", "a", "plain", "picture", "red", "green", "blue"]
    found = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="<unk>"))
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    found.post_processor = processors.TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 1)])
    return found


def photographs():
    """Return photographs: landscape, portrait, square, and smaller than any model's input."""
    random = np.random.default_rng(3)
    sizes = [(48, 85), (70, 41), (32, 32), (20, 9), (6, 5)]
    return [random.integers(0, 256, (*size, 3)).astype(np.uint8) for size in sizes]
