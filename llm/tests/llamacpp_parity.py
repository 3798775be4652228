"""FleetLM against llama.cpp's prebuilt libraries: blocks to the bit, logits of random small models in
32-bit floats within 2e-5, token ids of many strings. Exits 0 when all hold."""
import array
import ctypes
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import llamacpp  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURE = pathlib.Path(os.environ.get("FLEET_BUILD", ROOT / "build" / "dev")) / "bin" / "llm_fixture"
failures = []


def check(name, ok, detail):
    print("%-4s %s: %s" % ("ok" if ok else "FAIL", name, detail), flush=True)
    if not ok:
        failures.append(name)


def run(*args, **kw):
    return subprocess.run([str(FIXTURE), *map(str, args)], check=True, stdout=subprocess.PIPE, **kw).stdout


def blocks(library):
    rng = random.Random(1)
    kinds = [("q4_0", 18, 32, "q4_0"), ("q4_1", 20, 32, "q4_1"), ("q8_0", 34, 32, "q8_0"),
             ("q4_k", 144, 256, "q4_K"), ("q5_k", 176, 256, "q5_K"), ("q6_k", 210, 256, "q6_K")]
    for name, size, values, symbol in kinds:
        count = 500
        raw = bytearray(rng.randbytes(size * count))
        # Halves must be finite: clear the top exponent bit of every scale.
        offsets = {"q4_0": [1], "q4_1": [1, 3], "q8_0": [1], "q4_k": [1, 3], "q5_k": [1, 3], "q6_k": [209]}[name]
        for b in range(count):
            for at in offsets:
                raw[b * size + at] &= 0xbf
        mine = run("blocks", name, input=bytes(raw))
        out = (ctypes.c_float * (values * count))()
        fn = getattr(library.base, "dequantize_row_" + symbol)
        fn.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64]
        fn(bytes(raw), out, values * count)
        check("blocks " + name, bytes(out) == mine, "%d blocks" % count)


def quantised(library):
    """Encoding: the same bytes for the plain types, at most a tenth more error for the K types, whose encoder is
    a search."""
    rng = random.Random(4)
    values = array.array("f", (rng.gauss(0, 1) * rng.choice([0.01, 1, 30]) for _ in range(256 * 64)))
    raw = values.tobytes()
    for name, kind, symbol, exact in [("q8_0", 8, "q8_0", True), ("q4_0", 2, "q4_0", True), ("q4_1", 3, "q4_1", True),
                                      ("q4_k", 12, "q4_K", False), ("q5_k", 13, "q5_K", False), ("q6_k", 14, "q6_K", False),
                                      ("f16", 1, "f16", True), ("bf16", 30, "bf16", True)]:
        mine = run("quantize", name, input=raw)
        out = ctypes.create_string_buffer(len(mine))
        fn = library.base.ggml_quantize_chunk
        fn.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                       ctypes.c_int64, ctypes.c_void_p]
        fn.restype = ctypes.c_size_t
        if name in ("f16", "bf16"):
            fn = getattr(library.base, "ggml_fp32_to_%s_row" % ("fp16" if name == "f16" else name))
            fn.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64]
            fn(raw, out, len(values))
        else:
            fn(kind, raw, out, 0, 64, 256, None)
        if exact:
            different = sum(a != b for a, b in zip(mine, out.raw))
            check("quantize " + name, different == 0, "%d of %d bytes differ" % (different, len(mine)))
            continue
        errors = []
        for blocks_of in (mine, out.raw):
            back = array.array("f")
            back.frombytes(run("blocks", name, input=blocks_of))
            errors.append(sum((a - b) ** 2 for a, b in zip(values, back)) ** 0.5)
        check("quantize " + name, errors[0] <= 1.1 * errors[1], "error %.3f, llama.cpp %.3f" % tuple(errors))


def mtp(library, folder):
    """llama.cpp runs this layer without its indexer, so no more tokens than that would choose."""
    path, count, hidden, vocab = folder / "mtp.gguf", 8, 64, 320
    run("write", "glm-mtp", path, "f32", 3)
    rng = random.Random(5)
    tokens = [rng.randrange(vocab) for _ in range(count + 1)]
    mine = run("mtp", path, *tokens)
    states, scores = mine[:4 * count * hidden], array.array("f")
    scores.frombytes(mine[len(states):])
    peer = llamacpp.Model(library, path, context=64, exact=True, mtp=True)
    peer.decode(tokens[1:], states=states)
    worst = max(abs(peer.logits(i)[k] - scores[i * vocab + k]) for i in range(count) for k in range(vocab))
    check("mtp layer", worst <= 2e-5, "largest difference %.2e" % worst)


def dspark(library, folder):
    """One round after 29 tokens. The peer chains by its own best tokens, so a wrong one shows in all later slots."""
    rng, target, vocab, width, block, mask = random.Random(6), folder / "target.gguf", 96, 128, 6, 94
    run("write", "llama", target, "f32", 4)
    for layout, unused in [("anchor", 0), ("shifted", 1), ("part", 0)]:
        for seed in (1, 2):
            path, count = folder / (layout + str(seed) + ".gguf"), 29
            run("draft", target, path, layout, seed)
            tokens = [rng.randrange(vocab - 2) for _ in range(count + 1)]
            mine = run("dspark", target, path, *tokens)
            features, floats = mine[:4 * count * width], array.array("f")
            floats.frombytes(mine[len(features):])
            guesses = block - unused
            peer = llamacpp.Model(library, path, context=64, exact=True)
            peer.draft(features, count, tokens[-1:] + [mask] * (block - 1))
            pairs = [(peer.logits(n + unused)[k], floats[n * vocab + k]) for n in range(guesses) for k in range(vocab)]
            # Tokens that the draft does not know are as good as infinitely improbable on both sides.
            worst = max(0 if a == b or max(a, b) < -1e30 else abs(a - b) for a, b in pairs)
            sure = max(abs(peer.confidence(n + unused) - floats[guesses * vocab + n]) for n in range(guesses))
            check("dspark %s seed %d" % (layout, seed), worst <= 2e-5 and sure <= 2e-5 and
                  len(floats) == guesses * (vocab + 1), "largest difference %.2e, of confidences %.2e" % (worst, sure))


def logits(library, folder):
    rng = random.Random(2)
    for kind, vocab, count in [("llama", 96, 40), ("llama-linear", 96, 40), ("llama-yarn", 96, 40),
                               ("llama-divided", 96, 40), ("glm", 320, 24)]:
        for seed in (1, 2):
            path = folder / (kind + str(seed) + ".gguf")
            run("write", kind, path, "f32", seed)
            tokens = [rng.randrange(vocab) for _ in range(count)]
            mine = array.array("f")
            mine.frombytes(run("logits", path, "exact", *tokens))
            peer = llamacpp.Model(library, path, context=64, threads=2, exact=True)
            peer.decode(tokens)
            worst = 0.0
            for i in range(count):
                row = peer.logits(i)
                for k in range(vocab):
                    worst = max(worst, abs(row[k] - mine[i * vocab + k]))
            check("logits %s seed %d" % (kind, seed), worst <= 2e-5, "largest difference %.2e" % worst)


def sample_strings(count):
    rng = random.Random(3)
    words = ["hello", "World", "it's", "DON'T", "we'LL", "123", "4567890", "3.14", "foo_bar", "e\u0301", "\u00fcber",
             "\u4f60\u597d", "\u0645\u0631\u062d\u0628\u0627", "\U0001f600", "\u00bd", "\u0663", "\u2028", "\u3000", "\t", "\n",
             "\r\n", "\n\n", "  ", "   ", "!", "...", "\u2014", "(", ")", "{}", "<|im_start|>", "<|im_end|>", "<think>",
             "'s", "'", "\u2019s", "a", "I", "\u0130", "\u017f", "x" * 30, "-", "=>", "//", "\x00", "\x7f", "\ufffd"]
    for _ in range(count):
        yield "".join(rng.choice(words) + rng.choice(["", "", " ", "  "]) for _ in range(rng.randrange(1, 12)))


def tokens(library, model):
    texts = list(sample_strings(4000))
    peer = llamacpp.Model(library, model, context=64)
    lines = run("tokens", model, input="".join(json.dumps(t) + "\n" for t in texts).encode()).decode().splitlines()
    different = [(t, json.loads(l), peer.tokenize(t)) for t, l in zip(texts, lines) if json.loads(l) != peer.tokenize(t)]
    check("tokens", not different, "%d of %d strings differ%s" % (
        len(different), len(texts), "; first %r" % (different[0],) if different else ""))


def main():
    library = llamacpp.Library()
    blocks(library)
    quantised(library)
    with tempfile.TemporaryDirectory() as folder:
        logits(library, pathlib.Path(folder))
        mtp(library, pathlib.Path(folder))
        dspark(library, pathlib.Path(folder))
    model = subprocess.run([str(ROOT / "llm" / "tests" / "fetch_smollm2.sh")], check=True, stdout=subprocess.PIPE,
                           text=True).stdout.strip()
    tokens(library, model)
    sys.stdout.flush()
    os._exit(1 if failures else 0)  # past the peer's static destructors


main()
