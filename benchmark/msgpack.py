"""
The Python side of the MessagePack benchmark. A line on stdin is the path of a document to load, answered with "ready"; or
"run", answered with the CPU milliseconds of msgspec's encoder. It fails where msgspec writes other bytes.
"""

import sys
import time

import msgspec

CALLS = 3


def answer(text):
    print(text, flush=True)


encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder()
answer(f"msgspec {msgspec.__version__}, Python {sys.version.split()[0]}")
document = None
for line in sys.stdin:
    command = line.rstrip("\n")
    if command == "run":
        start = time.thread_time()
        for _ in range(CALLS):
            encoder.encode(document)
        answer(str((time.thread_time() - start) / CALLS * 1e3))
        continue
    with open(command, "rb") as file:
        data = file.read()
    document = decoder.decode(data)
    if encoder.encode(document) != data:
        raise ValueError(f"{command}: other bytes")
    answer("ready")
