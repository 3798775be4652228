"""GLM-5.2's architecture (glm_moe_dsa) in plain PyTorch, for training a tiny one on a CPU.

Multi-head latent attention, the lightning indexer with indices shared between layers, a sigmoid router
with a bias that balances load without a loss, one shared expert, and the multi-token-prediction layer.
Parameter names are those of the Hugging Face checkpoint, so that the state is the export.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Config:
    vocab_size: int = 2048
    hidden_size: int = 192
    num_hidden_layers: int = 6
    num_attention_heads: int = 6
    q_lora_rank: int = 96
    kv_lora_rank: int = 64
    qk_nope_head_dim: int = 32
    qk_rope_head_dim: int = 16
    v_head_dim: int = 32
    intermediate_size: int = 512
    moe_intermediate_size: int = 128
    n_routed_experts: int = 8
    num_experts_per_tok: int = 2
    first_k_dense_replace: int = 1
    routed_scaling_factor: float = 2.5
    index_n_heads: int = 8
    index_head_dim: int = 32
    index_topk: int = 64
    index_topk_freq: int = 4
    index_skip_topk_offset: int = 3
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 1024

    def is_full(self, layer):
        """Whether the layer has an indexer of its own; the others reuse the nearest earlier choice."""
        return max(layer - self.index_skip_topk_offset + 1, 0) % self.index_topk_freq == 0


class RmsNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


def rotate(x, cos, sin):
    """Interleaved rotary embedding of the last dimension; cos and sin are [time, half]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def rotary_table(length, size, theta):
    frequency = theta ** (-torch.arange(0, size, 2).float() / size)
    angle = torch.arange(length).float()[:, None] * frequency
    return angle.cos(), angle.sin()


class Indexer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.size, self.rope = c.index_n_heads, c.index_head_dim, c.qk_rope_head_dim
        self.wq_b = linear(c.q_lora_rank, self.heads * self.size)
        self.wk = linear(c.hidden_size, self.size)
        self.k_norm = nn.LayerNorm(self.size, eps=1e-6)
        self.weights_proj = linear(c.hidden_size, self.heads)

    def forward(self, h, r, cos, sin):
        """Scores [batch, time, time]; causal masking is the caller's."""
        batch, time, _ = h.shape
        cos, sin = cos[:time], sin[:time]
        q = self.wq_b(r).view(batch, time, self.heads, self.size)
        k = self.k_norm(self.wk(h))
        q = torch.cat([rotate(q[..., :self.rope], cos[:, None], sin[:, None]), q[..., self.rope:]], -1)
        k = torch.cat([rotate(k[..., :self.rope], cos, sin), k[..., self.rope:]], -1)
        match = torch.relu(torch.einsum("bthd,bud->bthu", q, k) * self.size ** -0.5)
        return torch.einsum("bthu,bth->btu", match, self.weights_proj(h) * self.heads ** -0.5)


class Attention(nn.Module):
    def __init__(self, c, full):
        super().__init__()
        self.c = c
        query = c.qk_nope_head_dim + c.qk_rope_head_dim
        self.q_a_proj = linear(c.hidden_size, c.q_lora_rank)
        self.q_a_layernorm = RmsNorm(c.q_lora_rank, c.rms_norm_eps)
        self.q_b_proj = linear(c.q_lora_rank, c.num_attention_heads * query)
        self.kv_a_proj_with_mqa = linear(c.hidden_size, c.kv_lora_rank + c.qk_rope_head_dim)
        self.kv_a_layernorm = RmsNorm(c.kv_lora_rank, c.rms_norm_eps)
        self.kv_b_proj = linear(c.kv_lora_rank, c.num_attention_heads * (c.qk_nope_head_dim + c.v_head_dim))
        self.o_proj = linear(c.num_attention_heads * c.v_head_dim, c.hidden_size)
        if full:
            self.indexer = Indexer(c)

    def forward(self, h, state):
        c, (batch, time, _), heads = self.c, h.shape, self.c.num_attention_heads
        cos, sin = state.cos[:time], state.sin[:time]
        r = self.q_a_layernorm(self.q_a_proj(h))
        q = self.q_b_proj(r).view(batch, time, heads, -1)
        q_nope, q_rope = q.split([c.qk_nope_head_dim, c.qk_rope_head_dim], -1)
        q = torch.cat([q_nope, rotate(q_rope, cos[:, None], sin[:, None])], -1)
        latent, k_rope = self.kv_a_proj_with_mqa(h).split([c.kv_lora_rank, c.qk_rope_head_dim], -1)
        kv = self.kv_b_proj(self.kv_a_layernorm(latent)).view(batch, time, heads, -1)
        k_nope, v = kv.split([c.qk_nope_head_dim, c.v_head_dim], -1)
        k_rope = rotate(k_rope, cos, sin)[:, :, None].expand(-1, -1, heads, -1)
        k = torch.cat([k_nope, k_rope], -1)
        if hasattr(self, "indexer"):
            # No gradient flows from the choice into the model: the indexer learns by imitation alone.
            state.choose(self.indexer(h.detach(), r.detach(), state.cos, state.sin))
        scores = torch.einsum("bthd,buhd->bhtu", q, k) / math.sqrt(q.shape[-1]) + state.mask
        probabilities = scores.softmax(-1)
        state.watch(probabilities)
        out = torch.einsum("bhtu,buhd->bthd", probabilities, v).reshape(batch, time, -1)
        return self.o_proj(out)


class Selection:
    """What attention may see: causal, and within it the indexer's choice once `sparse` is on. Collects
    the loss that teaches each indexer the attention of the layers that follow its choice."""

    def __init__(self, c, time, cos, sin, sparse):
        self.c, self.cos, self.sin, self.sparse = c, cos, sin, sparse
        self.causal = torch.full((time, time), float("-inf")).triu(1)
        self.mask = self.causal
        self.index_scores, self.group, self.losses, self.recalls = None, [], [], []

    def choose(self, scores):
        self.finish_group()
        self.index_scores = scores + self.causal
        if self.sparse and scores.shape[-1] > self.c.index_topk:
            best = self.index_scores.detach().topk(self.c.index_topk, -1).indices
            allowed = torch.zeros_like(scores, dtype=torch.bool).scatter_(-1, best, True)
            self.mask = self.causal.masked_fill(~allowed, float("-inf"))[:, None]

    def watch(self, probabilities):
        self.group.append(probabilities.detach().mean(1))

    def finish_group(self):
        if self.group:
            target = torch.stack(self.group).mean(0)
            guess = self.index_scores.log_softmax(-1).clamp_min(-30)
            self.losses.append(-(target * guess).sum(-1).mean())
            if target.shape[-1] > self.c.index_topk:
                best = self.index_scores.detach().topk(self.c.index_topk, -1).indices
                self.recalls.append(target.gather(-1, best)[:, self.c.index_topk:].sum(-1).mean())
        self.group = []


class Mlp(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = linear(hidden, inner), linear(hidden, inner), linear(inner, hidden)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Router(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(c.n_routed_experts, c.hidden_size) * 0.02)
        self.register_buffer("e_score_correction_bias", torch.zeros(c.n_routed_experts))


class Moe(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.gate = Router(c)
        self.experts = nn.ModuleList(Mlp(c.hidden_size, c.moe_intermediate_size) for _ in range(c.n_routed_experts))
        self.shared_experts = Mlp(c.hidden_size, c.moe_intermediate_size)

    def forward(self, x):
        shape, x = x.shape, x.reshape(-1, x.shape[-1])
        score = torch.sigmoid(F.linear(x.float(), self.gate.weight.float()))
        chosen = (score + self.gate.e_score_correction_bias).topk(self.c.num_experts_per_tok, -1).indices
        weight = score.gather(-1, chosen)
        weight = self.c.routed_scaling_factor * weight / (weight.sum(-1, keepdim=True) + 1e-20)
        out = self.shared_experts(x)
        for index, expert in enumerate(self.experts):
            token, slot = (chosen == index).nonzero(as_tuple=True)
            out = out.index_add(0, token, expert(x[token]) * weight[token, slot, None])
        if self.training:
            load = torch.bincount(chosen.flatten(), minlength=self.c.n_routed_experts).float()
            self.gate.e_score_correction_bias += 0.001 * torch.sign(load.mean() - load)
        return out.view(shape)


class Layer(nn.Module):
    def __init__(self, c, dense, full):
        super().__init__()
        self.input_layernorm = RmsNorm(c.hidden_size, c.rms_norm_eps)
        self.self_attn = Attention(c, full)
        self.post_attention_layernorm = RmsNorm(c.hidden_size, c.rms_norm_eps)
        self.mlp = Mlp(c.hidden_size, c.intermediate_size) if dense else Moe(c)

    def forward(self, x, state):
        x = x + self.self_attn(self.input_layernorm(x), state)
        return x + self.mlp(self.post_attention_layernorm(x))


class MtpLayer(Layer):
    """Predicts the token after the next from the final state and the next token's embedding."""

    def __init__(self, c):
        super().__init__(c, dense=False, full=True)
        self.enorm = RmsNorm(c.hidden_size, c.rms_norm_eps)
        self.hnorm = RmsNorm(c.hidden_size, c.rms_norm_eps)
        self.eh_proj = linear(2 * c.hidden_size, c.hidden_size)
        self.shared_head = nn.ModuleDict({"norm": RmsNorm(c.hidden_size, c.rms_norm_eps)})

    def forward(self, embedded_next, state_now, selection):
        z = self.eh_proj(torch.cat([self.enorm(embedded_next), self.hnorm(state_now)], -1))
        return self.shared_head["norm"](super().forward(z, selection))


class Trunk(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        layers = [Layer(c, i < c.first_k_dense_replace, c.is_full(i)) for i in range(c.num_hidden_layers)]
        self.layers = nn.ModuleList(layers + [MtpLayer(c)])
        self.norm = RmsNorm(c.hidden_size, c.rms_norm_eps)


class Glm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.model = Trunk(c)
        self.lm_head = linear(c.hidden_size, c.vocab_size)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02 if "embed" in name or "lm_head" in name
                                else (2 / sum(parameter.shape)) ** 0.5)
        cos, sin = rotary_table(c.max_position_embeddings, c.qk_rope_head_dim, c.rope_theta)
        self.cos, self.sin = cos, sin

    def forward(self, tokens, sparse=False, keep=()):
        """Final states after the norm [batch, time, hidden], the selection with its losses, and the
        residual stream at the input of each layer in `keep`."""
        selection = Selection(self.c, tokens.shape[1], self.cos, self.sin, sparse)
        x, kept = self.model.embed_tokens(tokens), []
        for index, layer in enumerate(self.model.layers[:-1]):
            if index in keep:
                kept.append(x)
            x = layer(x, selection)
        selection.finish_group()
        return self.model.norm(x), selection, kept

    def predict_second(self, tokens_next, state, sparse=False):
        """The MTP layer's states for the tokens after `tokens_next`."""
        selection = Selection(self.c, tokens_next.shape[1], self.cos, self.sin, sparse)
        out = self.model.layers[-1](self.model.embed_tokens(tokens_next), state, selection)
        selection.finish_group()
        return out, selection
