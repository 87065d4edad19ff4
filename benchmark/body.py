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


class Experts(msgspec.Struct):
    data: bytes


class CompactChoice(msgspec.Struct):
    routed_experts: Experts | None = None
    message: dict | None = None
    token_ids: list[int] | None = None


class CompactCompletion(msgspec.Struct):
    id: str
    prompt_token_ids: list[int]
    choices: list[CompactChoice]


decoders = [msgspec.json.Decoder(Completion), msgspec.json.Decoder(CompactCompletion)]


def fitting(body):
    """The decoder of the form that a body has."""
    for decoder in decoders:
        try:
            decoder.decode(body)
            return decoder
        except msgspec.ValidationError:
            pass
    raise ValueError("a body of neither form")


def plain(body):
    value = orjson.loads(body)
    for choice in value["choices"]:
        experts = choice.get("routed_experts")
        if isinstance(experts, dict):
            experts["data"] = pybase64.b64decode_as_bytearray(experts["data"])
        elif experts is not None:
            choice["routed_experts"] = pybase64.b64decode_as_bytearray(experts)
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
    decoder = fitting(body)
    answer("ready")
