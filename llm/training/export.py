#!/usr/bin/env python3
"""Writes the trained pair as safetensors with Hugging Face names (BF16) and as GGUF (F16 matrices).

  export.py --from DIR --to DIR

Result: target/{config.json,tokenizer.json,model.safetensors}, draft/{config.json,model.safetensors},
tiny-glm.gguf (architecture glm-dsa, the MTP layer included) and tiny-glm-draft.gguf (dflash).
"""
import argparse
import dataclasses
import json
import os
import struct

import numpy as np
import torch

import bpe
import dspark
import glm


def write_safetensors(path, tensors):
    """Header length (u64), JSON header, data; see the safetensors format description."""
    header, offset, bodies = {}, 0, []
    for name, tensor in tensors.items():
        keep = name.endswith("e_score_correction_bias")  # the router's bias stays in 32 bits
        value = tensor.float().contiguous()
        body = value.numpy().tobytes() if keep else value.bfloat16().view(torch.int16).numpy().tobytes()
        header[name] = {"dtype": "F32" if keep else "BF16", "shape": list(value.shape),
                        "data_offsets": [offset, offset + len(body)]}
        offset += len(body)
        bodies.append(body)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(bodies))


class Gguf:
    """GGUF version 3: metadata, tensor table, aligned data."""
    STRING, ARRAY, BOOL, U32, I32, F32 = 8, 9, 7, 4, 5, 6

    def __init__(self):
        self.pairs, self.tensors = [], []

    @staticmethod
    def string(text):
        data = text.encode()
        return struct.pack("<Q", len(data)) + data

    def value(self, kind, value):
        if kind == self.STRING:
            return self.string(value)
        return struct.pack({self.BOOL: "<?", self.U32: "<I", self.I32: "<i", self.F32: "<f"}[kind], value)

    def put(self, key, kind, value):
        self.pairs.append(self.string(key) + struct.pack("<I", kind) + self.value(kind, value))

    def put_all(self, key, kind, values):
        body = struct.pack("<IIQ", self.ARRAY, kind, len(values)) + b"".join(self.value(kind, v) for v in values)
        self.pairs.append(self.string(key) + body)

    def tensor(self, name, array):
        array = np.ascontiguousarray(array, dtype=np.float32)
        matrix = array.ndim > 1 and not name.endswith(("ffn_gate_inp.weight", "indexer.proj.weight"))
        self.tensors.append((name, array.astype(np.float16) if matrix else array, 1 if matrix else 0))

    def write(self, path):
        table, offset = b"", 0
        for name, array, kind in self.tensors:
            dims = array.shape[::-1]  # fastest first
            table += self.string(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
            table += struct.pack("<IQ", kind, offset)
            offset += -(-array.nbytes // 32) * 32
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.pairs)) + b"".join(self.pairs) + table
        with open(path, "wb") as file:
            file.write(head + b"\0" * (-len(head) % 32))
            for _, array, _ in self.tensors:
                file.write(array.tobytes() + b"\0" * (-array.nbytes % 32))


def target_config(c):
    full = dataclasses.asdict(c)
    full.update(architectures=["GlmMoeDsaForCausalLM"], model_type="glm_moe_dsa", torch_dtype="bfloat16",
                num_key_value_heads=c.num_attention_heads, n_shared_experts=1, n_group=1, topk_group=1,
                scoring_func="sigmoid", topk_method="noaux_tc", norm_topk_prob=True, hidden_act="silu",
                attention_bias=False, tie_word_embeddings=False, rope_interleave=True, indexer_rope_interleave=True,
                index_share_for_mtp_iteration=True, num_nextn_predict_layers=1,
                rope_parameters={"rope_theta": c.rope_theta, "rope_type": "default"},
                mlp_layer_types=["dense" if i < c.first_k_dense_replace else "sparse" for i in range(c.num_hidden_layers)],
                indexer_types=["full" if c.is_full(i) else "shared" for i in range(c.num_hidden_layers)],
                eos_token_id=[2027, 2034], pad_token_id=2027)
    return full


def put_tokenizer(gguf, tokenizer):
    special = set(bpe.SPECIALS)
    gguf.put("tokenizer.ggml.model", Gguf.STRING, "gpt2")
    gguf.put("tokenizer.ggml.pre", Gguf.STRING, "glm4")
    gguf.put_all("tokenizer.ggml.tokens", Gguf.STRING, tokenizer.tokens)
    kinds = [3 if token in special else 5 if token.startswith("[PAD") else 1 for token in tokenizer.tokens]
    gguf.put_all("tokenizer.ggml.token_type", Gguf.I32, kinds)
    gguf.put_all("tokenizer.ggml.merges", Gguf.STRING, [" ".join(pair) for pair in tokenizer.merges])
    gguf.put("tokenizer.ggml.eos_token_id", Gguf.U32, tokenizer.ids["<|endoftext|>"])
    gguf.put("tokenizer.ggml.eot_token_id", Gguf.U32, tokenizer.ids["<|user|>"])
    gguf.put("tokenizer.ggml.padding_token_id", Gguf.U32, tokenizer.ids["<|endoftext|>"])
    gguf.put("tokenizer.ggml.mask_token_id", Gguf.U32, tokenizer.ids["<|draft_mask|>"])
    gguf.put("tokenizer.ggml.add_bos_token", Gguf.BOOL, False)


def target_metadata(gguf, c):
    number = lambda key, value: gguf.put("glm-dsa." + key, Gguf.U32, value)
    gguf.put("general.architecture", Gguf.STRING, "glm-dsa")
    gguf.put("general.name", Gguf.STRING, "fleet tiny GLM-5.2 architecture")
    gguf.put("general.license", Gguf.STRING, "apache-2.0")
    number("context_length", c.max_position_embeddings)
    number("embedding_length", c.hidden_size)
    number("block_count", c.num_hidden_layers + 1)
    number("feed_forward_length", c.intermediate_size)
    number("expert_feed_forward_length", c.moe_intermediate_size)
    number("expert_count", c.n_routed_experts)
    number("expert_used_count", c.num_experts_per_tok)
    number("expert_shared_count", 1)
    number("leading_dense_block_count", c.first_k_dense_replace)
    number("expert_gating_func", 2)
    number("nextn_predict_layers", 1)
    number("vocab_size", c.vocab_size)
    number("attention.head_count", c.num_attention_heads)
    number("attention.head_count_kv", 1)
    number("attention.key_length", c.kv_lora_rank + c.qk_rope_head_dim)
    number("attention.value_length", c.kv_lora_rank)
    number("attention.key_length_mla", c.qk_nope_head_dim + c.qk_rope_head_dim)
    number("attention.value_length_mla", c.v_head_dim)
    number("attention.q_lora_rank", c.q_lora_rank)
    number("attention.kv_lora_rank", c.kv_lora_rank)
    number("attention.indexer.head_count", c.index_n_heads)
    number("attention.indexer.key_length", c.index_head_dim)
    number("attention.indexer.top_k", c.index_topk)
    number("rope.dimension_count", c.qk_rope_head_dim)
    gguf.put_all("glm-dsa.attention.indexer.types", Gguf.BOOL, [c.is_full(i) for i in range(c.num_hidden_layers)])
    gguf.put("glm-dsa.expert_weights_scale", Gguf.F32, c.routed_scaling_factor)
    gguf.put("glm-dsa.expert_weights_norm", Gguf.BOOL, True)
    gguf.put("glm-dsa.attention.layer_norm_rms_epsilon", Gguf.F32, c.rms_norm_eps)
    gguf.put("glm-dsa.rope.freq_base", Gguf.F32, c.rope_theta)


PLAIN = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_a_proj": "attn_q_a",
         "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
         "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
         "self_attn.o_proj": "attn_output", "self_attn.indexer.wq_b": "indexer.attn_q_b",
         "self_attn.indexer.wk": "indexer.attn_k", "self_attn.indexer.weights_proj": "indexer.proj",
         "self_attn.indexer.k_norm": "indexer.k_norm", "mlp.gate": "ffn_gate_inp", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
         "mlp.shared_experts.up_proj": "ffn_up_shexp", "mlp.shared_experts.down_proj": "ffn_down_shexp",
         "enorm": "nextn.enorm", "hnorm": "nextn.hnorm", "eh_proj": "nextn.eh_proj",
         "shared_head.norm": "nextn.shared_head_norm"}


def put_layer(gguf, c, index, state):
    prefix, here = f"blk.{index}.", f"model.layers.{index}."
    mine = {name[len(here):]: value.numpy() for name, value in state.items() if name.startswith(here)}
    for name, value in mine.items():
        stem, _, leaf = name.rpartition(".")
        if stem in PLAIN and leaf in ("weight", "bias"):
            gguf.tensor(f"{prefix}{PLAIN[stem]}.{leaf}", value)
    kv = mine["self_attn.kv_b_proj.weight"].reshape(c.num_attention_heads, -1, c.kv_lora_rank)
    gguf.tensor(prefix + "attn_k_b.weight", kv[:, :c.qk_nope_head_dim].transpose(0, 2, 1))
    gguf.tensor(prefix + "attn_v_b.weight", kv[:, c.qk_nope_head_dim:])
    if "mlp.gate.e_score_correction_bias" in mine:
        gguf.tensor(prefix + "exp_probs_b.bias", mine["mlp.gate.e_score_correction_bias"])
        for kind in ("gate", "up", "down"):
            stack = [mine[f"mlp.experts.{e}.{kind}_proj.weight"] for e in range(c.n_routed_experts)]
            gguf.tensor(f"{prefix}ffn_{kind}_exps.weight", np.stack(stack))


def export_target(source, folder):
    c, state = glm.Config(), torch.load(os.path.join(source, "target.pt"))["model"]
    os.makedirs(os.path.join(folder, "target"), exist_ok=True)
    with open(os.path.join(folder, "target", "config.json"), "w") as file:
        json.dump(target_config(c), file, indent=2)
    bpe.Bpe.load(os.path.join(source, "tokenizer.json")).save(os.path.join(folder, "target", "tokenizer.json"))
    write_safetensors(os.path.join(folder, "target", "model.safetensors"), state)
    gguf = Gguf()
    target_metadata(gguf, c)
    put_tokenizer(gguf, bpe.Bpe.load(os.path.join(source, "tokenizer.json")))
    gguf.tensor("token_embd.weight", state["model.embed_tokens.weight"].numpy())
    gguf.tensor("output_norm.weight", state["model.norm.weight"].numpy())
    gguf.tensor("output.weight", state["lm_head.weight"].numpy())
    for index in range(c.num_hidden_layers + 1):
        put_layer(gguf, c, index, state)
    gguf.write(os.path.join(folder, "tiny-glm.gguf"))


DRAFT_NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
               "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
               "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
               "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
DRAFT_TOP = {"fc.weight": "fc.weight", "hidden_norm.weight": "enc.output_norm.weight", "norm.weight": "output_norm.weight",
             "markov_head.markov_w1.weight": "markov_w1.weight", "markov_head.markov_w2.weight": "markov_w2.weight",
             "confidence_head.proj.weight": "conf_proj.weight", "confidence_head.proj.bias": "conf_proj.bias"}


def export_draft(source, folder):
    c, state = dspark.DraftConfig(), torch.load(os.path.join(source, "draft.pt"))["model"]
    os.makedirs(os.path.join(folder, "draft"), exist_ok=True)
    config = dict(dataclasses.asdict(c), architectures=["DSparkDraftModel"], speculators_model_type="dspark",
                  sample_from_anchor=True, markov_head_type="vanilla", draft_vocab_size=c.vocab_size)
    with open(os.path.join(folder, "draft", "config.json"), "w") as file:
        json.dump(config, file, indent=2)
    write_safetensors(os.path.join(folder, "draft", "model.safetensors"), state)
    gguf = Gguf()
    number = lambda key, value: gguf.put("dflash." + key, Gguf.U32, value)
    gguf.put("general.architecture", Gguf.STRING, "dflash")
    gguf.put("general.name", Gguf.STRING, "fleet tiny DSpark draft")
    number("block_size", c.block_size)
    gguf.put_all("dflash.target_layers", Gguf.I32, list(c.aux_hidden_state_layer_ids))
    gguf.put("dflash.sample_from_anchor", Gguf.BOOL, True)
    number("context_length", c.max_position_embeddings)
    number("embedding_length", c.hidden_size)
    number("block_count", c.num_hidden_layers)
    number("feed_forward_length", c.intermediate_size)
    number("attention.head_count", c.num_attention_heads)
    number("attention.head_count_kv", c.num_attention_heads)
    number("attention.key_length", c.head_dim)
    number("attention.value_length", c.head_dim)
    number("rope.dimension_count", c.head_dim)
    gguf.put("dflash.rope.freq_base", Gguf.F32, c.rope_theta)
    gguf.put("dflash.attention.layer_norm_rms_epsilon", Gguf.F32, c.rms_norm_eps)
    put_tokenizer(gguf, bpe.Bpe.load(os.path.join(source, "tokenizer.json")))
    for name, value in state.items():
        parts = name.split(".")
        if parts[0] == "layers":
            stem = ".".join(parts[2:-1])
            gguf.tensor(f"blk.{parts[1]}.{DRAFT_NAMES[stem]}.weight", value.numpy())
        else:
            gguf.tensor(DRAFT_TOP[name], value.numpy())
    gguf.write(os.path.join(folder, "tiny-glm-draft.gguf"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", required=True)
    options = parser.parse_args()
    export_target(options.source, options.to)
    if os.path.exists(os.path.join(options.source, "draft.pt")):
        export_draft(options.source, options.to)


if __name__ == "__main__":
    main()
