"""FleetLM and llama.cpp on the same file, threads and machine, interleaved; medians and ratios.

    llm/tests/llamacpp_bench.py MODEL.gguf [rounds]
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import llamacpp  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLEETLM = pathlib.Path(os.environ.get("FLEET_BUILD", ROOT / "build" / "release")) / "bin" / "fleetlm"
PROMPT = 256
DECODE = 32


def peer_round(model):
    tokens = [(i * 7919) % 40000 + 100 for i in range(PROMPT)]
    model.clear()
    start = time.monotonic()
    model.decode(tokens, every=False)
    prefill = PROMPT / (time.monotonic() - start)
    start = time.monotonic()
    for i in range(DECODE):
        model.decode([500 + i], start=PROMPT + i)
    return prefill, DECODE / (time.monotonic() - start)


def our_round(path, threads):
    out = subprocess.run([str(FLEETLM), "bench", path, "--repeats", "7", "--prompt-tokens", str(PROMPT),
                          "--threads", str(threads)], check=True, capture_output=True, text=True)
    result = json.loads(out.stdout)
    return result["prefill_tokens_per_s"], result["decode_tokens_per_s"]


def main():
    path = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    threads = os.cpu_count()
    peer = llamacpp.Model(llamacpp.Library(), path, context=1024, threads=threads)
    peer_round(peer)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(our_round(path, threads))
        theirs.append(peer_round(peer))
    for name, at in (("prefill", 0), ("decode", 1)):
        a = statistics.median(r[at] for r in ours)
        b = statistics.median(r[at] for r in theirs)
        print("%s: fleetlm %.1f tokens/s, llama.cpp %.1f tokens/s, ratio %.2f" % (name, a, b, a / b), flush=True)
    os._exit(0)


main()
