"""Runs llama.cpp's own server with a tiny model, in the folder that is the first argument.

Prints its address as one line of JSON, and ends when its input ends.
"""

import json
import os
import sys

import tiny_model
import xllamacpp

directory = sys.argv[1]
model = os.path.join(directory, "tiny.gguf")
tiny_model.write(model)

params = xllamacpp.CommonParams()
params.model.path = model
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 4_096
params.n_parallel = 2
params.cpuparams.n_threads = 1
params.n_gpu_layers = 0
params.warmup = False
params.endpoint_metrics = True
server = xllamacpp.Server(params)
print(json.dumps({"url": server.listening_address}), flush=True)
sys.stdin.read()
# Without a wait for its threads, which hold nothing that must be kept.
os._exit(0)
