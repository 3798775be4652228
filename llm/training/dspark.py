"""The DSpark draft (arXiv 2607.05147) in plain PyTorch: a small Qwen3-style decoder that reads the
target's hidden states and fills a block of tokens in one pass, a low-rank Markov head that makes the
block's tokens depend on each other, and a confidence head that says how much of it to verify.

Layout: sample_from_anchor. Slot k of a block at anchor position s predicts the token at s+k+1 and its
Markov bias looks at the token at s+k. Embedding and output head are the target's.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn

from glm import RmsNorm, linear, rotary_table


@dataclasses.dataclass
class DraftConfig:
    vocab_size: int = 2048
    target_hidden_size: int = 192
    hidden_size: int = 192
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    head_dim: int = 48
    intermediate_size: int = 384
    aux_hidden_state_layer_ids: tuple = (1, 3, 5)  # the residual stream at the input of these layers
    block_size: int = 8
    markov_rank: int = 64
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    mask_token_id: int = 2047
    max_position_embeddings: int = 1024


def rotate_half(x, cos, sin):
    """Half-split rotary embedding of the last dimension."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class DraftAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        inner = c.num_attention_heads * c.head_dim
        self.heads, self.size = c.num_attention_heads, c.head_dim
        self.q_proj, self.k_proj, self.v_proj = (linear(c.hidden_size, inner) for _ in range(3))
        self.o_proj = linear(inner, c.hidden_size)
        self.q_norm, self.k_norm = RmsNorm(c.head_dim, c.rms_norm_eps), RmsNorm(c.head_dim, c.rms_norm_eps)

    def split(self, x):
        return x.view(*x.shape[:-1], self.heads, self.size)

    def forward(self, h, context, anchors, cos, sin):
        """h [batch, blocks, slots, hidden]; context [batch, time, hidden]; anchors [batch, blocks]."""
        batch, blocks, slots, _ = h.shape
        time = context.shape[1]
        where = anchors[..., None] + torch.arange(slots)
        own_cos, own_sin = cos[where][..., None, :], sin[where][..., None, :]
        q = rotate_half(self.q_norm(self.split(self.q_proj(h))), own_cos, own_sin)
        k = rotate_half(self.k_norm(self.split(self.k_proj(h))), own_cos, own_sin)
        v = self.split(self.v_proj(h))
        past_k = rotate_half(self.k_norm(self.split(self.k_proj(context))), cos[:time, None], sin[:time, None])
        past_v = self.split(self.v_proj(context))
        past = torch.einsum("bnshd,buhd->bnhsu", q, past_k)
        hidden = torch.arange(time) >= anchors[..., None]  # the anchor's own state does not exist yet
        past = past.masked_fill(hidden[:, :, None, None], float("-inf"))
        own = torch.einsum("bnshd,bnuhd->bnhsu", q, k)
        weights = (torch.cat([past, own], -1) / math.sqrt(self.size)).softmax(-1)
        out = torch.einsum("bnhsu,buhd->bnshd", weights[..., :time], past_v)
        out = out + torch.einsum("bnhsu,bnuhd->bnshd", weights[..., time:], v)
        return self.o_proj(out.reshape(batch, blocks, slots, -1))


class DraftLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RmsNorm(c.hidden_size, c.rms_norm_eps)
        self.self_attn = DraftAttention(c)
        self.post_attention_layernorm = RmsNorm(c.hidden_size, c.rms_norm_eps)
        self.mlp = nn.ModuleDict({"gate_proj": linear(c.hidden_size, c.intermediate_size),
                                  "up_proj": linear(c.hidden_size, c.intermediate_size),
                                  "down_proj": linear(c.intermediate_size, c.hidden_size)})

    def forward(self, x, *where):
        x = x + self.self_attn(self.input_layernorm(x), *where)
        h = self.post_attention_layernorm(x)
        return x + self.mlp["down_proj"](F.silu(self.mlp["gate_proj"](h)) * self.mlp["up_proj"](h))


class MarkovHead(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.markov_w1 = nn.Embedding(c.vocab_size, c.markov_rank)
        self.markov_w2 = linear(c.markov_rank, c.vocab_size)
        nn.init.zeros_(self.markov_w2.weight)


class ConfidenceHead(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.proj = nn.Linear(c.hidden_size + c.markov_rank, 1)


class Draft(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.fc = linear(len(c.aux_hidden_state_layer_ids) * c.target_hidden_size, c.hidden_size)
        self.hidden_norm = RmsNorm(c.hidden_size, c.rms_norm_eps)
        self.layers = nn.ModuleList(DraftLayer(c) for _ in range(c.num_hidden_layers))
        self.norm = RmsNorm(c.hidden_size, c.rms_norm_eps)
        self.markov_head = MarkovHead(c)
        self.confidence_head = ConfidenceHead(c)
        self.cos, self.sin = rotary_table(c.max_position_embeddings, c.head_dim, c.rope_theta)

    def forward(self, target, tokens, aux, anchors):
        """Logits [batch, blocks, slots, vocab] with the Markov bias of the given tokens, and the
        confidence's logit [batch, blocks, slots]."""
        c = self.c
        context = self.hidden_norm(self.fc(torch.cat(aux, -1)))
        slots = torch.arange(c.block_size)
        before = tokens.gather(1, (anchors[..., None] + slots).flatten(1)).view(*anchors.shape, -1)
        block = torch.where(slots == 0, before, torch.full_like(before, c.mask_token_id))
        x = target.model.embed_tokens(block)
        for layer in self.layers:
            x = layer(x, context, anchors, self.cos, self.sin)
        f = self.norm(x)
        memory = self.markov_head.markov_w1(before)
        logits = target.lm_head(f) + self.markov_head.markov_w2(memory)
        return logits, self.confidence_head.proj(torch.cat([f, memory], -1)).squeeze(-1)


def loss_of(logits, confidence, target_logits, truth):
    """The paper's loss and what it measures: acceptance per slot (mean over blocks)."""
    p, q = target_logits.softmax(-1), logits.softmax(-1)
    distance = 0.5 * (p - q).abs().sum(-1)
    accepted = (1 - distance).detach()
    weight = torch.exp(-torch.arange(logits.shape[2]) / 4.0)
    ground = F.cross_entropy(logits.flatten(0, 2), truth.flatten(), reduction="none").view_as(distance)
    calibration = F.binary_cross_entropy_with_logits(confidence, accepted, reduction="none")
    loss = ((0.1 * ground + 0.9 * 2 * distance + calibration) * weight).mean()
    same = (logits.argmax(-1) == target_logits.argmax(-1)).float()
    return loss, accepted.mean((0, 1)), same.cumprod(-1).sum(-1).mean()
