#!/usr/bin/env python3
"""Trains the DSpark draft for the target that train_target.py made, on a CPU, resumably.

  train_draft.py --out DIR [--steps N] [--batch 8] [--anchors 24] [--threads 1]

Reads DIR/target.pt, writes DIR/draft.pt and DIR/draft.log: loss, acceptance per slot at temperature 1
and the mean greedy run (tokens a round without the bonus), both against the target's own distribution on
corpus text.
"""
import argparse
import json
import math
import os
import time

import numpy as np
import torch

import dspark
import glm
from train_target import batch_of, load_tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--anchors", type=int, default=24)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(2)
    target = glm.Glm(glm.Config())
    target.load_state_dict(torch.load(os.path.join(options.out, "target.pt"))["model"])
    target.eval().requires_grad_(False)
    _, tokens = load_tokens(options.out, target.c.vocab_size, 4_000_000)
    draft = dspark.Draft(dspark.DraftConfig())
    optimizer = torch.optim.AdamW(draft.parameters(), lr=options.rate, betas=(0.9, 0.95), weight_decay=0.0)
    path, step = os.path.join(options.out, "draft.pt"), 0
    if os.path.exists(path):
        saved = torch.load(path)
        draft.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    log, saved_at, started = open(os.path.join(options.out, "draft.log"), "a"), time.time(), time.time()
    block = draft.c.block_size
    while step < options.steps:
        for group in optimizer.param_groups:
            part = step / options.steps
            group["lr"] = options.rate * min(1, step / 50 + 0.02) * (0.05 + 0.475 * (1 + math.cos(math.pi * part)))
        rng = np.random.default_rng(10_000_000 + step)
        rows = batch_of(tokens, rng, options.batch, options.length)
        inputs = rows[:, :-1]
        with torch.no_grad():
            state, _, aux = target(inputs, sparse=True, keep=draft.c.aux_hidden_state_layer_ids)
        anchors = torch.from_numpy(rng.integers(8, options.length - block, (options.batch, options.anchors)))
        where = anchors[..., None] + torch.arange(block)
        index = torch.arange(options.batch)[:, None, None]
        logits, confidence = draft(target, inputs, aux, anchors)
        loss, accepted, run = dspark.loss_of(logits, confidence, target.lm_head(state[index, where]),
                                             rows[index, where + 1])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(draft.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 20 == 0:
            line = {"step": step, "loss": round(loss.item(), 4), "run": round(run.item(), 3),
                    "accepted": [round(value, 3) for value in accepted.tolist()],
                    "s": round(time.time() - started, 1)}
            print(json.dumps(line), file=log, flush=True)
        if time.time() - saved_at > 120 or step == options.steps:
            torch.save({"model": draft.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path + ".new")
            os.replace(path + ".new", path)
            saved_at = time.time()


if __name__ == "__main__":
    main()
