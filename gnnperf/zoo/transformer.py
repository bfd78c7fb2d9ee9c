"""Transformers by configuration: BERT encoders, GPT-2 and OPT decoders, written as Hugging Face's PyTorch code runs.

A spec is ``bert?layers=12&hidden=768&heads=12&seq=128``, with ``gpt2`` or ``opt`` in place of ``bert``; keys left out
take the kind's defaults. ``bert_base`` and the other names are configurations, and take ``?seq=512`` in the same way.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from gnnperf.errors import ModelFileError
from gnnperf.zoo.architecture import Architecture, Published
from gnnperf.zoo.builder import GraphBuilder, Tensor

FAMILY = "transformer"
EXAMPLE = "bert?layers=12&hidden=768&heads=12&seq=128"
_MASKED = float(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """Sizes of a transformer.

    Attributes:
        kind: ``bert``, ``gpt2`` or ``opt``.
        layers: blocks.
        hidden: width.
        heads: attention heads; the width is a multiple.
        seq: tokens of the input, fixed in the graph.
        ffn: width of the feed-forward layer, 0 for four times ``hidden``.
        vocab: rows of the token embedding.
        positions: rows of the position embedding.
        head: ``lm`` (token logits, weights tied to the embedding), ``pooler`` (BERT's) or ``none``.
    """

    kind: str
    layers: int = 12
    hidden: int = 768
    heads: int = 12
    seq: int = 128
    ffn: int = 0
    vocab: int = 30522
    positions: int = 512
    head: str = "lm"

    @property
    def ffn_width(self) -> int:
        """Width of the feed-forward layer."""
        return self.ffn or 4 * self.hidden


KINDS = {
    "bert": TransformerConfig("bert", head="pooler"),
    "gpt2": TransformerConfig("gpt2", seq=1024, vocab=50257, positions=1024),
    "opt": TransformerConfig("opt", layers=24, hidden=2048, heads=32, seq=2048, vocab=50272, positions=2048),
}
_MAX_LAYERS = 1000  # each adds operators to the file
_KEYS = [field.name for field in fields(TransformerConfig) if field.name != "kind"]


def configure(base: TransformerConfig, query: str, spec: str) -> TransformerConfig:
    """``base`` changed by ``key=value`` pairs joined by ``&``; ``spec`` is the whole, for messages.

    Raises:
        ModelFileError: a key is unknown, or the sizes do not fit each other.
    """
    changes: dict[str, int | str] = {}
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        if key == "head" and value in ("lm", "pooler", "none"):
            changes[key] = value
        elif key in _KEYS and key != "head" and re.fullmatch(r"\d{1,9}", value):
            changes[key] = int(value)
        else:
            raise ModelFileError(f"{spec!r}: {pair!r} is not understood; keys are {', '.join(_KEYS)}, as in {EXAMPLE}")
    config = replace(base, **changes)
    if min(config.layers, config.hidden, config.heads, config.seq, config.vocab) < 1 or config.hidden % config.heads:
        raise ModelFileError(f"{spec!r}: sizes have to be positive, and hidden a multiple of heads")
    if config.layers > _MAX_LAYERS:
        raise ModelFileError(f"{spec!r}: at most {_MAX_LAYERS} layers are possible")
    if config.seq > config.positions:
        raise ModelFileError(f"{spec!r}: seq {config.seq} is beyond the {config.positions} positions; give positions=")
    if config.head == "pooler" and config.kind != "bert":
        raise ModelFileError(f"{spec!r}: only bert has a pooler")
    return config


def architecture(
    name: str, config: TransformerConfig, published: Published | None = None, note: str = ""
) -> Architecture:
    """Zoo entry of a configuration."""
    network = partial(bert if config.kind == "bert" else decoder, config=config)
    return Architecture(name, FAMILY, network, image=None, classes=None, published=published, note=note)


def bert(g: GraphBuilder, image: None, classes: None, *, config: TransformerConfig) -> Tensor:
    """Encoder with post-normalisation and a padding mask."""
    tokens = g.input("input_ids", (config.seq,), "int64")
    attention_mask = g.input("attention_mask", (config.seq,), "int64")
    token_types = g.input("token_type_ids", (config.seq,), "int64")
    table = g.weight("embeddings.word.weight", (config.vocab, config.hidden))
    x = g.gather(table, tokens)
    x = g.add(x, g.gather(g.weight("embeddings.token_type.weight", (2, config.hidden)), token_types))
    positions = g.weight("embeddings.position.weight", (config.positions, config.hidden))
    x = g.add(x, g.gather(positions, g.constant(np.arange(config.seq)[None])))
    x = g.layer_norm(x, epsilon=1e-12)

    shape = (attention_mask.shape[0], 1, 1, config.seq)
    mask = g.operator("Unsqueeze", [attention_mask, g.constant([1, 2])], shape, "int64")
    mask = g.operator("Cast", [mask], shape, "float32", to=1)
    mask = g.operator("Sub", [g.constant(1.0), mask], shape, "float32")
    mask = g.mul(mask, _MASKED)

    for _ in range(config.layers):
        x = g.layer_norm(g.add(_attention(g, x, config, lambda scores: g.add(scores, mask)), x), epsilon=1e-12)
        out = g.unary("Gelu", g.token_linear(x, config.ffn_width))
        x = g.layer_norm(g.add(g.token_linear(out, config.hidden), x), epsilon=1e-12)

    if config.head == "pooler":
        return g.unary("Tanh", g.linear(g.select(x, 0, axis=1), config.hidden))
    if config.head == "lm":
        x = g.layer_norm(g.unary("Gelu", g.token_linear(x, config.hidden)), epsilon=1e-12)
        logits = _tied_head(g, x, table)
        return g.add(logits, g.weight("head.bias", (config.vocab,)))
    return x


def decoder(g: GraphBuilder, image: None, classes: None, *, config: TransformerConfig) -> Tensor:
    """GPT-2 or OPT: pre-normalisation and a causal mask over the whole prompt, no cache."""
    tokens = g.input("input_ids", (config.seq,), "int64")
    table = g.weight("embeddings.word.weight", (config.vocab, config.hidden))
    # OPT keeps two rows in front of its position table.
    offset = 2 if config.kind == "opt" else 0
    positions = g.weight("embeddings.position.weight", (config.positions + offset, config.hidden))
    indices = g.constant(np.arange(offset, offset + config.seq)[None])
    x = g.add(g.gather(table, tokens), g.gather(positions, indices))
    causal = g.constant(np.tril(np.ones((1, 1, config.seq, config.seq), bool)))

    def mask(scores: Tensor) -> Tensor:
        return g.operator("Where", [causal, scores, g.constant(_MASKED)], scores.shape, "float32")

    for _ in range(config.layers):
        x = g.add(_attention(g, g.layer_norm(x), config, mask), x)
        out = g.token_linear(g.layer_norm(x), config.ffn_width)
        out = g.relu(out) if config.kind == "opt" else _gelu_new(g, out)
        x = g.add(g.token_linear(out, config.hidden), x)
    x = g.layer_norm(x)
    return _tied_head(g, x, table) if config.head == "lm" else x


def _attention(g: GraphBuilder, x: Tensor, config: TransformerConfig, mask) -> Tensor:
    head_width = config.hidden // config.heads
    split = (config.seq, config.heads, head_width)
    if config.kind == "gpt2":
        query, key, value = g.split(g.token_linear(x, 3 * config.hidden), 3, axis=2)
    else:
        query, key, value = (g.token_linear(x, config.hidden) for _ in range(3))
    query, value = (g.transpose(g.reshape(part, split), (0, 2, 1, 3)) for part in (query, value))
    key = g.transpose(g.reshape(key, split), (0, 2, 3, 1))
    scores = g.binary("Div", g.matmul(query, key), math.sqrt(head_width))
    context = g.matmul(g.softmax(mask(scores)), value)
    context = g.reshape(g.transpose(context, (0, 2, 1, 3)), (config.seq, config.hidden))
    return g.token_linear(context, config.hidden)


def _gelu_new(g: GraphBuilder, x: Tensor) -> Tensor:
    """GPT-2's tanh approximation, eight launches in Hugging Face's code."""
    inner = g.add(g.mul(g.binary("Pow", x, 3.0), 0.044715), x)
    gate = g.add(g.unary("Tanh", g.mul(inner, math.sqrt(2 / math.pi))), 1.0)
    return g.mul(g.mul(x, 0.5), gate)


def _tied_head(g: GraphBuilder, x: Tensor, table: Tensor) -> Tensor:
    return g.split_tokens(g.tied_linear(g.merge_tokens(x), table), x.shape[1])


_HUB = "parameters of the Hugging Face checkpoint"

CONFIGS = {
    "bert_base": (KINDS["bert"], Published(None, 109_482_240, _HUB), "BertModel with pooler"),
    "bert_large": (
        replace(KINDS["bert"], layers=24, hidden=1024, heads=16),
        Published(None, 335_141_888, _HUB),
        "BertModel with pooler; ?head=lm for BertLMHeadModel",
    ),
    "gpt2": (KINDS["gpt2"], Published(None, 124_439_808, _HUB), ""),
    "gpt2_medium": (
        replace(KINDS["gpt2"], layers=24, hidden=1024, heads=16), Published(None, 354_823_168, _HUB), "",
    ),
    "gpt2_large": (
        replace(KINDS["gpt2"], layers=36, hidden=1280, heads=20), Published(None, 774_030_080, _HUB), "",
    ),
    "gpt2_xl": (
        replace(KINDS["gpt2"], layers=48, hidden=1600, heads=25), Published(None, 1_557_611_200, _HUB), "",
    ),
    "gpt3_xl": (
        replace(KINDS["gpt2"], layers=24, hidden=3072, heads=24, seq=2048, positions=2048), None,
        "as NeuSight configures it, 24 heads of 128; GPT-3's paper gives 24 heads of 128 and a width of 2048",
    ),
    "gpt3_2_7b": (
        replace(KINDS["gpt2"], layers=32, hidden=2560, heads=32, seq=2048, positions=2048), None,
        "GPT-3 2.7B in GPT-2's code, as NeuSight configures it",
    ),
    "opt_1_3b": (KINDS["opt"], Published(None, 1_315_758_080, _HUB), ""),
}  # fmt: skip

ARCHITECTURES = [architecture(name, *entry) for name, entry in CONFIGS.items()]
