"""A byte-level BPE tokenizer: trained here, written to tokenizer.json, read by the engine.

Splitting follows the glm4 pre-tokenizer (llm/tokenizer) for ASCII text, which is all the corpus has:
contractions | one other character and letters | up to three digits | punctuation and line ends | blanks.
"""
import collections
import json
import re

SPECIALS = ["<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>",
            "<|assistant|>", "<|observation|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
            "<tool_response>", "</tool_response>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
            "<|draft_mask|>"]
SPLIT = re.compile(r"'(?i:s|t|re|ve|m|ll|d)|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]{1,3}|"
                   r" ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# The same for all of Unicode, as tokenizer.json names it.
GLM4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        r"\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = re.compile("(" + "|".join(re.escape(token) for token in SPECIALS) + ")")


def byte_letters():
    """GPT-2's printable stand-ins for the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in plain}
    for byte in range(256):
        if byte not in letters:
            letters[byte] = chr(256 + sum(1 for other in letters.values() if ord(other) >= 256))
    return letters


LETTERS = byte_letters()


def spell(word):
    return tuple(LETTERS[byte] for byte in word.encode())


def pieces(text):
    """Special tokens and words, in order."""
    for part in SPECIAL.split(text):
        if part in SPECIALS:
            yield part, True
        else:
            for word in SPLIT.findall(part):
                yield word, False


class Bpe:
    def __init__(self, tokens, merges):
        self.tokens = tokens
        self.merges = merges
        self.ids = {token: index for index, token in enumerate(tokens)}
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.cache = {}

    @staticmethod
    def train(documents, vocabulary):
        counts = collections.Counter(word for text in documents for word, special in pieces(text) if not special)
        words = [(list(spell(word)), count) for word, count in counts.items()]
        tokens = [LETTERS[byte] for byte in range(256)]
        merges = []
        while len(tokens) + len(SPECIALS) < vocabulary:
            pairs = collections.Counter()
            for letters, count in words:
                for pair in zip(letters, letters[1:]):
                    pairs[pair] += count
            if not pairs:
                break
            best = max(pairs, key=lambda pair: (pairs[pair], pair))
            merges.append(best)
            tokens.append(best[0] + best[1])
            for letters, _ in words:
                merge_in_place(letters, best)
        # Padded like GLM-5.2's table: the specials stand at the end in the same order.
        while len(tokens) + len(SPECIALS) < vocabulary:
            tokens.append(f"[PAD{len(tokens)}]")
        return Bpe(tokens + SPECIALS, merges)

    def encode(self, text):
        out = []
        for word, special in pieces(text):
            if special:
                out.append(self.ids[word])
                continue
            if word not in self.cache:
                self.cache[word] = self.encode_word(word)
            out.extend(self.cache[word])
        return out

    def encode_word(self, word):
        letters = list(spell(word))
        while len(letters) > 1:
            rank, pair = min((self.ranks.get(pair, 1 << 30), pair) for pair in zip(letters, letters[1:]))
            if rank == 1 << 30:
                break
            merge_in_place(letters, pair)
        return [self.ids[letter] for letter in letters]

    def decode(self, ids):
        back = {letter: byte for byte, letter in LETTERS.items()}
        out = bytearray()
        for index in ids:
            token = self.tokens[index]
            out += token.encode() if token in SPECIALS else bytes(back[letter] for letter in token)
        return out.decode(errors="replace")

    def save(self, path):
        """In the layout of Hugging Face's tokenizers."""
        added = [{"id": self.ids[token], "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                  "normalized": False, "special": not token.startswith(("<think", "</think"))} for token in SPECIALS]
        body = {"version": "1.0", "added_tokens": added, "normalizer": None,
                "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                    {"type": "Split", "pattern": {"Regex": GLM4}, "behavior": "Isolated", "invert": False},
                    {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
                "decoder": {"type": "ByteLevel"},
                "model": {"type": "BPE", "vocab": {token: index for token, index in self.ids.items()},
                          "merges": [" ".join(pair) for pair in self.merges]}}
        with open(path, "w") as file:
            json.dump(body, file, ensure_ascii=False, indent=0)

    @staticmethod
    def load(path):
        with open(path) as file:
            model = json.load(file)["model"]
        tokens = sorted(model["vocab"], key=model["vocab"].get)
        return Bpe(tokens, [tuple(pair.split(" ")) for pair in model["merges"]])


def merge_in_place(letters, pair):
    i = 0
    while i + 1 < len(letters):
        if letters[i] == pair[0] and letters[i + 1] == pair[1]:
            letters[i:i + 2] = [pair[0] + pair[1]]
        i += 1
