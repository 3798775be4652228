"""FleetLM against Hugging Face transformers: small random models written by save_pretrained and read
as folders. The input of every layer and the logits within 1e-4, the positions that the indexer
selects equal. Converted to GGUF, llama.cpp must give the same logits within 2e-5 as we do. Exits 0
when all hold.

    llm/tests/hf_parity.py            makes a virtual environment with torch and transformers first
    HF_PYTHON=... hf_parity.py        a Python that has them
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("FLEET_BUILD", ROOT / "build" / "dev")) / "bin"
FIXTURE, FLEETLM = BIN / "llm_fixture", BIN / "fleetlm"
PACKAGES = ["torch", "transformers>=5.12", "numpy"]


def enter_environment():
    """Runs this script again in a Python that has the packages."""
    if os.environ.get("HF_PARITY_INSIDE"):
        return
    python = os.environ.get("HF_PYTHON")
    if not python:
        home = ROOT / "build" / "oracles" / "hf"
        python = home / "bin" / "python"
        if not (home / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
            (home / "ready").touch()
    os.execve(python, [str(python), __file__], dict(os.environ, HF_PARITY_INSIDE="1"))


enter_environment()
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import llamacpp  # noqa: E402

LLAMACPP = llamacpp.Library()

failures = []


def check(name, ok, detail):
    print("%-4s %s: %s" % ("ok" if ok else "FAIL", name, detail), flush=True)
    if not ok:
        failures.append(name)


def ours(*args, **kw):
    return subprocess.run([str(FIXTURE), *map(str, args)], check=True, stdout=subprocess.PIPE, **kw).stdout


def floats(data, *shape):
    return np.frombuffer(data, dtype=np.float32).reshape(shape)


def glm_config():
    """Every size differs, and more tokens than the indexer keeps."""
    return transformers.GlmMoeDsaConfig(
        vocab_size=320, hidden_size=64, intermediate_size=96, moe_intermediate_size=32, num_hidden_layers=6,
        num_attention_heads=4, num_key_value_heads=4, n_shared_experts=1, n_routed_experts=8,
        routed_scaling_factor=2.5, kv_lora_rank=32, q_lora_rank=48, qk_rope_head_dim=32, v_head_dim=20,
        qk_nope_head_dim=24, n_group=1, topk_group=1, num_experts_per_tok=2, first_k_dense_replace=1,
        mlp_layer_types=["dense"] + ["sparse"] * 5, norm_topk_prob=True, max_position_embeddings=512,
        rms_norm_eps=1e-5, rope_parameters={"rope_theta": 10000.0, "rope_type": "default"},
        index_topk=8, index_head_dim=64, index_n_heads=16, attention_bias=False, tie_word_embeddings=False,
        indexer_types=["full", "full", "shared", "shared", "full", "shared"])


def randomise(model, seed):
    """Weights of a size at which every part matters, biases and norms included."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, value in list(model.named_parameters()) + list(model.named_buffers()):
            if "inv_freq" in name or not value.is_floating_point():
                continue
            if value.dim() == 1:
                centre = 0.0 if name.endswith("bias") else 1.0
                value.copy_(centre + 0.2 * (2 * torch.rand_like(value) - 1))
            else:
                value.copy_((2 * torch.rand_like(value) - 1) * 1.7 / value.shape[-1] ** 0.5)


def watch_selection(model):
    """Collects what each indexer returns, by layer."""
    seen = {}
    for index, layer in enumerate(model.model.layers):
        indexer = getattr(layer.self_attn, "indexer", None)
        if indexer is not None:
            indexer.register_forward_hook(lambda m, a, out, index=index: seen.__setitem__(index, out))
    return seen


def compare(name, model, folder, count, seed):
    randomise(model, seed)
    model.eval().save_pretrained(folder)
    rng = random.Random(seed)
    vocab = model.config.vocab_size
    tokens = [rng.randrange(vocab) for _ in range(count)]
    seen = watch_selection(model)
    with torch.no_grad():
        out = model(torch.tensor([tokens]), output_hidden_states=True, use_cache=False)
    layers = model.config.num_hidden_layers
    trace = floats(ours("trace", folder, *tokens), layers, count, model.config.hidden_size)
    worst = [float(np.abs(trace[i] - out.hidden_states[i][0].numpy()).max()) for i in range(layers)]
    at = max(range(layers), key=lambda i: worst[i])
    check(name + " layers", max(worst) <= 1e-4, "largest difference %.1e, at the input of layer %d" % (worst[at], at))
    logits = floats(ours("logits", folder, "exact", *tokens), count, vocab)
    gap = float(np.abs(logits - out.logits[0].numpy()).max())
    check(name + " logits", gap <= 1e-4, "largest difference %.1e, logits up to %.1f" % (gap, np.abs(logits).max()))
    if seen:
        compare_selection(name, folder, tokens, seen)
    compare_converted(name, folder, tokens, vocab)


def compare_converted(name, folder, tokens, vocab):
    path = folder.with_suffix(".gguf")
    subprocess.run([str(FLEETLM), "convert", str(folder), str(path)], check=True)
    mine = floats(ours("logits", path, "exact", *tokens), len(tokens), vocab)
    peer = llamacpp.Model(LLAMACPP, path, context=64, exact=True)
    peer.decode(tokens)
    theirs = np.array([peer.logits(i)[:vocab] for i in range(len(tokens))])
    gap = float(np.abs(mine - theirs).max())
    check(name + " converted", gap <= 2e-5, "largest difference from llama.cpp %.1e" % gap)


def compare_selection(name, folder, tokens, seen):
    mine = [json.loads(line) for line in ours("selected", folder, *tokens).splitlines()]
    sets, different, choice = 0, 0, None
    for layer, rows in enumerate(mine):
        choice = seen.get(layer, choice)  # a shared layer uses the choice of the one before
        for t, row in enumerate(rows):
            # Below top-k transformers fills up with positions that the causal mask hides.
            theirs = sorted(int(p) for p in choice[0, t] if p <= t)
            sets += 1
            different += theirs != row
    check(name + " selection", different == 0, "%d of %d sets differ" % (different, sets))


def models():
    shape = dict(vocab_size=96, hidden_size=64, intermediate_size=112, num_hidden_layers=3, num_attention_heads=4,
                 num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-5, tie_word_embeddings=False)
    rope = {"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}
    yield "llama", transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape, **rope))
    tied = dict(shape, tie_word_embeddings=True)
    yield "llama tied", transformers.LlamaForCausalLM(transformers.LlamaConfig(**tied, **rope))
    yield "qwen2", transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**shape, **rope))
    yield "qwen3", transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**shape, head_dim=24, **rope))
    for kind, more in [("linear", {"factor": 4.0}),
                       ("yarn", {"factor": 4.0, "original_max_position_embeddings": 64}),
                       ("llama3", {"factor": 8.0, "original_max_position_embeddings": 64, "low_freq_factor": 1.0,
                                   "high_freq_factor": 4.0})]:
        scaled = {"rope_parameters": {"rope_theta": 10000.0, "rope_type": kind, **more}}
        yield "llama " + kind, transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape, **scaled))
    yield "glm_moe_dsa", transformers.GlmMoeDsaForCausalLM(glm_config())


def main():
    print("transformers %s, torch %s" % (transformers.__version__, torch.__version__))
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as home:
        for name, model in models():
            for seed in (1, 2):
                compare("%s seed %d" % (name, seed), model, pathlib.Path(home) / (name + str(seed)), 40, seed)
    sys.stdout.flush()
    os._exit(1 if failures else 0)  # past the peer's static destructors


main()
