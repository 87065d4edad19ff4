"""
The Python side of the JSON benchmark. A line on stdin is the path of a document to load, answered with "ready" or why not;
or "run", answered with the CPU milliseconds of one call of each printer.
"""

import sys
import time

import msgspec
import orjson

PRINTERS = (orjson.dumps, msgspec.json.Encoder().encode)
LEAST_S = 0.01


def load(path):
    with open(path, "rb") as file:
        text = file.read()
    document = orjson.loads(text)
    for printer in PRINTERS:
        printed = printer(document)
        # Some numbers are written in another way.
        if printed != text and orjson.loads(printed) != document:
            raise ValueError("other bytes")
    return document


def seconds(printer, document, calls):
    start = time.thread_time()
    for _ in range(calls):
        printer(document)
    return time.thread_time() - start


def calls_for(document):
    calls = 1
    while seconds(PRINTERS[0], document, calls) < LEAST_S:
        calls *= 2
    return calls


def answer(text):
    print(text, flush=True)


answer(f"orjson {orjson.__version__}, msgspec {msgspec.__version__}, Python {sys.version.split()[0]}")
document, calls = None, 1
for line in sys.stdin:
    command = line.rstrip("\n")
    if command == "run":
        answer(" ".join(str(seconds(printer, document, calls) / calls * 1e3) for printer in PRINTERS))
        continue
    try:
        document = None
        document = load(command)
        calls = calls_for(document)
        answer("ready")
    except Exception as error:
        answer(str(error).split("\n")[0])
