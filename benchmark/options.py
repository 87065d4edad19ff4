"""
The Python side of the benchmark of options. A line on stdin is a dtype and the path of its bytes, answered with the text
of orjson's JSON; or "run", answered with the CPU milliseconds of one call.
"""

import sys
import time

import numpy
import orjson

CALLS = 5


def dumps(array):
    return orjson.dumps(array, option=orjson.OPT_SERIALIZE_NUMPY)


def answer(text):
    print(text, flush=True)


answer(f"orjson {orjson.__version__}, numpy {numpy.__version__}, Python {sys.version.split()[0]}")
array = None
for line in sys.stdin:
    command = line.split()
    if command == ["run"]:
        start = time.thread_time()
        for _ in range(CALLS):
            dumps(array)
        answer(str((time.thread_time() - start) / CALLS * 1e3))
        continue
    dtype, path = command
    array = numpy.fromfile(path, dtype=dtype)
    with open(f"{path}.json", "wb") as file:
        file.write(dumps(array))
    answer("ready")
