#!/usr/bin/env python3
"""Trains the tiny GLM-5.2-architecture model on the generated corpus, on a CPU, resumably.

  train_target.py --out DIR [--steps N] [--batch 16] [--length 256] [--threads 1]

Writes DIR/tokenizer.json, DIR/target.pt (checkpoint, every few minutes) and DIR/target.log. Stages: dense
attention while the indexers learn to imitate it, then (last fifth) attention limited to their choice.
"""
import argparse
import itertools
import json
import math
import os
import time

import numpy as np
import torch
import torch.nn.functional as F

import bpe
import corpus
import glm


def load_tokens(folder, vocabulary, count):
    """The tokenizer and the training tokens, made once and kept."""
    tokenizer_path, tokens_path = os.path.join(folder, "tokenizer.json"), os.path.join(folder, "tokens.npy")
    if not os.path.exists(tokenizer_path):
        bpe.Bpe.train(list(itertools.islice(corpus.documents(1), 6000)), vocabulary).save(tokenizer_path)
    tokenizer = bpe.Bpe.load(tokenizer_path)
    if not os.path.exists(tokens_path):
        tokens, source = [], corpus.documents(2)
        while len(tokens) < count:
            tokens.extend(tokenizer.encode(next(source)))
        np.save(tokens_path, np.array(tokens[:count], dtype=np.uint16))
    return tokenizer, np.load(tokens_path, mmap_mode="r")


def batch_of(tokens, rng, batch, length):
    starts = rng.integers(0, len(tokens) - length - 2, batch)
    rows = np.stack([tokens[start:start + length + 2] for start in starts]).astype(np.int64)
    return torch.from_numpy(rows)


def losses_of(model, rows, sparse):
    inputs = rows[:, :-2]
    state, selection, _ = model(inputs, sparse)
    logits = model.lm_head(state)
    main = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:-1].flatten())
    second, second_selection = model.predict_second(rows[:, 1:-1], state, sparse)
    mtp = F.cross_entropy(model.lm_head(second).flatten(0, 1), rows[:, 2:].flatten())
    index = sum(selection.losses + second_selection.losses) / (len(selection.losses) + 1)
    recall = torch.stack(selection.recalls).mean().item() if selection.recalls else 1.0
    return main, mtp, index, recall


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    config = glm.Config()
    _, tokens = load_tokens(options.out, config.vocab_size, 4_000_000)
    model = glm.Glm(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, betas=(0.9, 0.95), weight_decay=0.01)
    checkpoint_path, step = os.path.join(options.out, "target.pt"), 0
    if os.path.exists(checkpoint_path):
        saved = torch.load(checkpoint_path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    log, saved_at, started = open(os.path.join(options.out, "target.log"), "a"), time.time(), time.time()
    model.train()
    while step < options.steps:
        part = step / options.steps
        rate = options.rate * min(1, step / 100 + 0.01) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * part)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        rows = batch_of(tokens, np.random.default_rng(step), options.batch, options.length)
        main_loss, mtp, index, recall = losses_of(model, rows, sparse=part >= 0.8)
        optimizer.zero_grad(set_to_none=True)
        (main_loss + 0.2 * mtp + 0.1 * index).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 20 == 0:
            line = {"step": step, "loss": round(main_loss.item(), 4), "mtp": round(mtp.item(), 4),
                    "index": round(index.item(), 4), "recall": round(recall, 4), "s": round(time.time() - started, 1)}
            print(json.dumps(line), file=log, flush=True)
        if time.time() - saved_at > 120 or step == options.steps:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step},
                       checkpoint_path + ".new")
            os.replace(checkpoint_path + ".new", checkpoint_path)
            saved_at = time.time()


if __name__ == "__main__":
    main()
