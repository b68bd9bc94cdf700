"""GPUs as people write of them, and how many."""

import pytest

from gpudoctor.readers.gpu_words import named_gpus
from gpudoctor.readers.text import clean_text


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("4 RTX 3090 on Ubuntu", 4),
        ("2x4090 and vLLM", 2),
        ("8 x A100 server", 8),
        ("8xH100 node", 8),
        ("dual 3090 setup", 2),
        ("two 3090 cards", 2),
        ("I have three 3090s", 3),
        ("I have four 3090s", 4),
        ("six RTX 3090", 6),
        ("we have eight 3090s", 8),
        ("9 RTX 3090", 9),
        ("16 RTX 3090", 16),
        ("17 RTX 3090", 0),
        ("training on 4 A100s", 4),
        ("GPU: 4x NVIDIA A100", 4),
        ("GPU: RTX 3090 (x4)", 4),
        ("GPU: RTX 2080 Ti * 2", 2),
        ("A100-80GB x8 machine", 8),
        ("Ubuntu 22.04, CUDA 12.4, 2 x RTX 3090", 2),
        ("2 x RTX 3060 12GB", 2),
        ("I have an RTX 3060 12GB", 1),
        ("GPU: RTX 3090", 1),
        ("GPU device name: NVIDIA GeForce RTX 5090", 1),
        ("CUDA 12 RTX 3090", 0),
        ("batch size 4, 3090", 0),
    ],
)
def test_how_many_a_text_names(text: str, count: int) -> None:
    found = named_gpus(clean_text(text, "x"))
    assert (len(found), len({gpu.name for gpu in found})) == (count, min(count, 1))
