"""llama.cpp's prebuilt CPU libraries as an oracle for tests and as the peer in benchmarks.

The libraries come from the npm package @node-llama-cpp/linux-x64 (version pinned below) and are
unpacked into build/oracles; nothing of them is shipped. Structures passed by value are treated as
opaque blobs that start from llama.cpp's own defaults; the offsets belong to this version only.
"""
import ctypes
import os
import pathlib
import subprocess
import tarfile

PACKAGE = "@node-llama-cpp/linux-x64@3.22.1"
ROOT = pathlib.Path(__file__).resolve().parents[2]


def fetch():
    """The folder with the libraries, downloaded once."""
    home = pathlib.Path(os.environ.get("LLAMACPP_LIBS", ROOT / "build" / "oracles" / "llamacpp"))
    libs = home / "package" / "bins" / "linux-x64"
    if not libs.exists():
        home.mkdir(parents=True, exist_ok=True)
        out = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=home, check=True,
                             capture_output=True, text=True)
        with tarfile.open(home / out.stdout.strip().splitlines()[-1]) as archive:
            archive.extractall(home, filter="data")
    return libs


class Blob(ctypes.Structure):
    """A structure by value, larger than any real one."""
    _fields_ = [("bytes", ctypes.c_ubyte * 512)]

    def set_i32(self, word, value):
        ctypes.cast(self.bytes, ctypes.POINTER(ctypes.c_int32))[word] = value


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.c_void_p), ("embd", ctypes.c_void_p),
                ("pos", ctypes.c_void_p), ("n_seq_id", ctypes.c_void_p),
                ("seq_id", ctypes.c_void_p), ("logits", ctypes.c_void_p)]


class Library:
    def __init__(self, quiet=True):
        libs = fetch()
        for name in ["libggml-base.so", "libggml.v0.5.0.so", "libllama.v0.5.0.so"]:
            path = next(iter(libs.glob(name.replace(".so", "*.so*"))))
            handle = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            if "ggml-base" in name:
                self.base = handle
            elif "llama" in name:
                self.llama = handle
            else:
                self.ggml = handle
        if quiet:
            self._log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(
                lambda *a: None)
            self.llama.llama_log_set(self._log, None)
        self.ggml.ggml_backend_load_all_from_path(str(libs).encode())
        self.llama.llama_backend_init()
        for name, result in [("llama_model_default_params", Blob),
                             ("llama_context_default_params", Blob),
                             ("llama_model_load_from_file", ctypes.c_void_p),
                             ("llama_init_from_model", ctypes.c_void_p),
                             ("llama_model_get_vocab", ctypes.c_void_p),
                             ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float)),
                             ("llama_get_memory", ctypes.c_void_p)]:
            getattr(self.llama, name).restype = result


class Model:
    def __init__(self, library, path, context=512, threads=2, exact=False, mtp=False):
        """`mtp`: the model's layer for multi-token prediction instead of the model."""
        self.lib = library
        llama = library.llama
        params = llama.llama_model_default_params()
        if mtp:
            params.bytes[77] = 1  # load that layer
        llama.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Blob]
        self.model = llama.llama_model_load_from_file(str(path).encode(), params)
        if not self.model:
            raise RuntimeError("llama.cpp could not load " + str(path))
        cp = llama.llama_context_default_params()
        cp.set_i32(0, context)
        cp.set_i32(1, context)
        cp.set_i32(2, context)
        cp.set_i32(7, threads)
        cp.set_i32(8, threads)
        if mtp:
            cp.set_i32(9, 1)
        if exact:
            cp.set_i32(13, 0)   # no flash attention
            cp.set_i32(26, 0)   # 32-bit cache
            cp.set_i32(27, 0)
        llama.llama_init_from_model.argtypes = [ctypes.c_void_p, Blob]
        self.ctx = llama.llama_init_from_model(self.model, cp)
        if not self.ctx:
            raise RuntimeError("llama.cpp could not make a context")
        self.vocab = llama.llama_model_get_vocab(ctypes.c_void_p(self.model))
        llama.llama_vocab_n_tokens.argtypes = [ctypes.c_void_p]
        self.n_vocab = llama.llama_vocab_n_tokens(self.vocab)

    def tokenize(self, text, special=True):
        data = text if isinstance(text, bytes) else text.encode()
        size = len(data) + 16
        out = (ctypes.c_int32 * size)()
        fn = self.lib.llama.llama_tokenize
        fn.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p,
                       ctypes.c_int32, ctypes.c_bool, ctypes.c_bool]
        n = fn(self.vocab, data, len(data), out, size, False, special)
        return list(out[:max(n, 0)])

    def clear(self):
        fn = self.lib.llama.llama_memory_clear
        fn.argtypes = [ctypes.c_void_p, ctypes.c_bool]
        self.lib.llama.llama_get_memory.argtypes = [ctypes.c_void_p]
        fn(self.lib.llama.llama_get_memory(self.ctx), True)

    def decode(self, tokens, start=0, every=True, states=None, rows=None):
        """Runs the tokens at positions start...; logits with `every`, else of the last only. `states`: bytes
        of a float vector beside each token, for multi-token prediction; without tokens, `rows` such vectors, which
        a draft takes into its cache."""
        n = rows if tokens is None else len(tokens)
        token = (ctypes.c_int32 * n)(*tokens) if tokens is not None else None
        pos = (ctypes.c_int32 * n)(*range(start, start + n))
        n_seq = (ctypes.c_int32 * n)(*([1] * n))
        seq = (ctypes.c_int32 * 1)(0)
        seqs = (ctypes.c_void_p * n)(*([ctypes.addressof(seq)] * n))
        flags = (ctypes.c_int8 * n)(*[1 if every or i == n - 1 else 0 for i in range(n)])
        embd = ctypes.create_string_buffer(states, len(states)) if states else None
        batch = Batch(n, ctypes.addressof(token) if token else None, ctypes.addressof(embd) if embd else None,
                      ctypes.addressof(pos), ctypes.addressof(n_seq), ctypes.addressof(seqs), ctypes.addressof(flags))
        fn = self.lib.llama.llama_decode
        fn.argtypes = [ctypes.c_void_p, Batch]
        code = fn(self.ctx, batch)
        if code != 0:
            raise RuntimeError("llama_decode returned %d" % code)

    def draft(self, features, rows, block):
        """A DSpark draft's pass over a block of tokens after `rows` positions with these features (bytes). It is a
        dflash file; slot k's logits are then logits(k), its confidence confidence(k)."""
        llama = self.lib.llama
        llama.llama_set_causal_attn.argtypes = [ctypes.c_void_p, ctypes.c_bool]
        llama.llama_set_causal_attn(self.ctx, False)
        fn = llama._Z26llama_set_embeddings_nextnP13llama_contextbb
        fn.argtypes = [ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool]
        fn(self.ctx, True, False)
        self.decode(None, states=features, rows=rows)
        self.decode(block, start=rows)

    def confidence(self, i):
        fn = self.lib.llama._Z30llama_get_embeddings_nextn_ithP13llama_contexti
        fn.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        fn.restype = ctypes.POINTER(ctypes.c_float)
        return fn(self.ctx, i)[0]

    def logits(self, i):
        fn = self.lib.llama.llama_get_logits_ith
        fn.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        return fn(self.ctx, i)
