"""
The Python side of the benchmark of JSONL files: `orjson PATH`, `msgspec PATH`: reads two ids of each row, and answers with CPU
and wall milliseconds and a sum of the ids.
"""

import sys
import time

import msgspec
import orjson


class Row(msgspec.Struct):
    example_id: int
    group_id: int


decoder = msgspec.json.Decoder(Row)


def with_orjson(path):
    total = 0
    with open(path, "rb") as file:
        for line in file:
            row = orjson.loads(line)
            total += row["example_id"] + row["group_id"]
    return total


def with_msgspec(path):
    total = 0
    with open(path, "rb") as file:
        for line in file:
            row = decoder.decode(line)
            total += row.example_id + row.group_id
    return total


print(f"orjson {orjson.__version__}, msgspec {msgspec.__version__}, Python {sys.version.split()[0]}", flush=True)
for line in sys.stdin:
    name, path = line.rstrip("\n").split(" ", 1)
    cpu, wall = time.process_time(), time.perf_counter()
    total = {"orjson": with_orjson, "msgspec": with_msgspec}[name](path)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"{cpu * 1e3} {wall * 1e3} {total}", flush=True)
