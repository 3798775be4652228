"""FleetLM and llama.cpp on the same file and machine, interleaved; medians and ratios.

    llm/tests/llamacpp_bench.py MODEL.gguf [rounds]          wall time, all processors
    llm/tests/llamacpp_bench.py MODEL.gguf [rounds] --cpu    CPU time of one thread: on busy machines
"""
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import llamacpp  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLEETLM = pathlib.Path(os.environ.get("FLEET_BUILD", ROOT / "build" / "release")) / "bin" / "fleetlm"
TEXT = " the quick brown fox jumps over the lazy dog and runs" * 20
DECODE = 48


def peer_round(model, tokens, clock):
    """Tokens a second of prefill and of decode after a short prompt."""
    model.clear()
    start = clock()
    model.decode(tokens, every=False)
    prefill = len(tokens) / (clock() - start)
    model.clear()
    model.decode(tokens[:4], every=False)
    start = clock()
    for i in range(DECODE):
        model.decode([500 + i], start=4 + i)
    return prefill, DECODE / (clock() - start)


def our_wall_round(path, threads, prompt):
    out = subprocess.run([str(FLEETLM), "bench", path, "--repeats", "7", "--prompt-tokens", str(prompt),
                          "--threads", str(threads)], check=True, capture_output=True, text=True)
    result = json.loads(out.stdout)
    return result["prefill_tokens_per_s"], result["decode_tokens_per_s"]


def child_cpu(path, prompt, tokens):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(FLEETLM), "run", path, "-p", prompt, "-n", str(tokens), "-t", "1", "--spec", "none",
                    "--temperature", "0"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime


def our_cpu_round(path, prompt):
    """By differences of whole runs, so that loading cancels out."""
    short = child_cpu(path, "Once upon a time", 1)
    decode = DECODE / (child_cpu(path, "Once upon a time", 1 + DECODE) - short)
    return (prompt - 4) / (child_cpu(path, TEXT, 1) - short), decode


def main():
    cpu = "--cpu" in sys.argv
    words = [a for a in sys.argv[1:] if a != "--cpu"]
    path = words[0]
    rounds = int(words[1]) if len(words) > 1 else 5
    threads = 1 if cpu else os.cpu_count()
    peer = llamacpp.Model(llamacpp.Library(), path, context=1024, threads=threads)
    tokens = peer.tokenize(TEXT)
    clock = time.process_time if cpu else time.monotonic
    peer_round(peer, tokens, clock)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(our_cpu_round(path, len(tokens)) if cpu else our_wall_round(path, threads, len(tokens)))
        theirs.append(peer_round(peer, tokens, clock))
    for name, at in (("prefill", 0), ("decode", 1)):
        a = statistics.median(r[at] for r in ours)
        b = statistics.median(r[at] for r in theirs)
        print("%s: fleetlm %.1f tokens/s, llama.cpp %.1f tokens/s, ratio %.2f" % (name, a, b, a / b), flush=True)
    os._exit(0)


main()
