"""FleetLM and llama.cpp on the same file and machine, interleaved; medians and ratios.

    llm/tests/llamacpp_bench.py MODEL.gguf [--seconds 240]          wall time, all processors
    llm/tests/llamacpp_bench.py MODEL.gguf [--seconds 240] --cpu    processor time of one thread

Rounds go on until the time is used up, at least one; on a busy machine --cpu is the one to trust. Both
sides compute the same work: a prompt of 128 tokens at once, then single tokens right after it.
"""
import argparse
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
PROMPT = 128
DECODE = 16


def peer_round(model, clock):
    """Tokens a second of prefill and of decode."""
    model.clear()
    start = clock()
    model.decode([100 + 7 * i for i in range(PROMPT)], every=False)
    prefill = PROMPT / (clock() - start)
    times = []
    for i in range(DECODE):
        start = clock()
        model.decode([500 + i], start=PROMPT + i)
        times.append(clock() - start)
    return prefill, 1 / statistics.median(times)


def our_round(path, threads, cpu):
    command = [str(FLEETLM), "bench", path, "--repeats", "5", "--prompt-tokens", str(PROMPT), "--threads", str(threads)]
    out = subprocess.run(command + (["--cpu"] if cpu else []), check=True, capture_output=True, text=True, timeout=200)
    result = json.loads(out.stdout)
    return result["prefill_tokens_per_s"], result["decode_tokens_per_s"], result["steps_at_width_4"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    end = time.monotonic() + args.seconds
    threads = 1 if args.cpu else os.cpu_count()
    peer = llamacpp.Model(llamacpp.Library(), args.model, context=512, threads=threads)
    clock = time.process_time if args.cpu else time.monotonic
    peer_round(peer, clock)  # touches its memory
    ours, theirs, slowest = [], [], 0
    while not ours or time.monotonic() + slowest < end:
        start = time.monotonic()
        ours.append(our_round(args.model, threads, args.cpu))
        theirs.append(peer_round(peer, clock))
        slowest = max(slowest, time.monotonic() - start)
    print("%d rounds, %d thread%s, %s time" % (len(ours), threads, "" if threads == 1 else "s",
                                               "processor" if args.cpu else "wall"))
    for name, at in (("prefill", 0), ("decode", 1)):
        a = statistics.median(r[at] for r in ours)
        b = statistics.median(r[at] for r in theirs)
        print("%s: fleetlm %.1f tokens/s, llama.cpp %.1f tokens/s, ratio %.2f" % (name, a, b, a / b))
    print("a step of width 4 costs %.2f steps of width 1" % statistics.median(r[2] for r in ours), flush=True)
    os._exit(0)  # the peer's destructors abort in some versions


main()
