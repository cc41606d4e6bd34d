"""A tiny Llama as a GGUF file, written by the package gguf."""

from pathlib import Path
from typing import Any

import torch
from gguf import GGUFWriter
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.convert_slow_tokenizer import bytes_to_unicode

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PLAIN = 1
CONTROL = 3
_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
"""Module of a layer in transformers -> its name in GGUF."""


def make_model() -> LlamaForCausalLM:
    """Return a tiny Llama with random weights and a token for each byte."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(list_tokens()),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config)


def list_tokens() -> list[str]:
    """Return the vocabulary: three special tokens, the bytes, two spaces, and four."""
    bytes_ = bytes_to_unicode()
    space = bytes_[ord(" ")]
    return [*SPECIAL, *bytes_.values(), 2 * space, 4 * space]


def write_gguf(path: Path, *, architecture: str = "llama", **entries: Any) -> LlamaForCausalLM:
    """Write the tiny Llama; return the model that the file should be read as.

    `entries` replace those of the tokenizer; None leaves one out.
    """
    model = make_model()
    config: Any = model.config
    writer = GGUFWriter(path, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    tokens = list_tokens()
    kinds = [CONTROL] * len(SPECIAL) + [PLAIN] * (len(tokens) - len(SPECIAL))
    values: dict[str, Any] = {
        "model": "gpt2",
        "pre": "smollm",
        "tokens": tokens,
        "types": kinds,
        "merges": ["Ġ Ġ", "ĠĠ ĠĠ"],
        "bos": 1,
        # Not the one that the chat template closes an answer with.
        "eos": 0,
        "unk": 0,
        "template": TEMPLATE,
        **entries,
    }
    adders = {
        "model": writer.add_tokenizer_model,
        "pre": writer.add_tokenizer_pre,
        "tokens": writer.add_token_list,
        "types": writer.add_token_types,
        "merges": writer.add_token_merges,
        "bos": writer.add_bos_token_id,
        "eos": writer.add_eos_token_id,
        "unk": writer.add_unk_token_id,
        "pad": writer.add_pad_token_id,
        "template": writer.add_chat_template,
        "pieces": lambda number: writer.add_uint16("split.count", number),
    }
    for name, value in values.items():
        if value is not None:
            adders[name](value)
    for name, weight in model.state_dict().items():
        # Tied to the embedding.
        if name != "lm_head.weight":
            writer.add_tensor(_rename(name), _reorder(name, weight, config).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _rename(name: str) -> str:
    """Return GGUF's name of a weight."""
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    _, _, number, module = name.removesuffix(".weight").split(".", 3)
    return f"blk.{number}.{_NAMES[module]}.weight"


def _reorder(name: str, weight: torch.Tensor, config: Any) -> torch.Tensor:
    """Return a weight with its rows in the order of llama.cpp, which rotates neighbours."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    num_heads = heads.get(name.split(".")[-2])
    if num_heads is None:
        return weight
    halves = weight.reshape(num_heads, 2, -1, weight.shape[1])
    return halves.transpose(1, 2).reshape(weight.shape).contiguous()
