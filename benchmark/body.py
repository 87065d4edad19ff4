"""
The Python side of the benchmark of bodies. A line on stdin is the path of a body to load, answered with "ready"; or "run",
answered with the CPU milliseconds of orjson.loads and pybase64, and of msgspec into structs with a bytes field.
"""

import sys
import time

import msgspec
import orjson
import pybase64


class Choice(msgspec.Struct):
    routed_experts: bytes | None = None
    message: dict | None = None
    token_ids: list[int] | None = None


class Completion(msgspec.Struct):
    id: str
    choices: list[Choice]


decoder = msgspec.json.Decoder(Completion)


def plain(body):
    value = orjson.loads(body)
    for choice in value["choices"]:
        if choice.get("routed_experts") is not None:
            choice["routed_experts"] = pybase64.b64decode_as_bytearray(choice["routed_experts"])
    return value


def milliseconds(call, body):
    start = time.thread_time()
    call(body)
    return (time.thread_time() - start) * 1e3


def answer(text):
    print(text, flush=True)


versions = f"orjson {orjson.__version__}, pybase64 {pybase64.__version__}, msgspec {msgspec.__version__}"
answer(f"{versions}, Python {sys.version.split()[0]}")
body = b""
for line in sys.stdin:
    command = line.rstrip("\n")
    if command == "run":
        answer(f"{milliseconds(plain, body)} {milliseconds(decoder.decode, body)}")
        continue
    with open(command, "rb") as file:
        body = file.read()
    answer("ready")
