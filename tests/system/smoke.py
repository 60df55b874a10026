"""The installed `llmgw`, two simulated nodes: the first rejects the model, the second serves it.

Run as a script; the exit status is 0 if clients got every answer, as JSON and as a stream, and the
nodes say that this took a handoff.
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

PROGRAM = Path(sys.executable).with_name("llmgw")
MODELS = {
    False: "smoke-json",
    True: "smoke-sse",
}  # a node that failed for one is tried later for it
READY_WITHIN = 60.0
ASKED = 4  # of each kind: the nodes take turns, so the first one rejects some of them


class SmokeFailed(Exception):
    """What should have happened did not."""


def main():
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="llmgw-smoke-"))
        try:
            rejecting = start_node(stack, "rejects", "--fault", "model_not_found")
            serving = start_node(stack, "serves")
            gateway = start_gateway(stack, folder, (rejecting, serving))
            for stream in (False, True):
                check(gateway, rejecting, serving, stream=stream)
        except SmokeFailed as failure:
            print(f"smoke: {failure}\n{Path(folder, 'log').read_text()}", file=sys.stderr)
            return 1
    print("smoke: a node that rejects the model costs no client its answer, JSON or SSE")
    return 0


def start_node(stack, name, *flags):
    command = [PROGRAM, "sim", "--name", name, "--tps", "0", *flags]
    command += [word for model in MODELS.values() for word in ("--model", model)]
    process = start(stack, command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return process.stdout.readline().strip()


def start_gateway(stack, folder, nodes):
    addresses = [free_address(), free_address()]
    command = [PROGRAM, "serve", *(word for node in nodes for word in ("--node", node))]
    command += ["--listen", addresses[0], "--metrics-listen", addresses[1]]
    environment = {**os.environ, "STATE_DIRECTORY": folder, "RUNTIME_DIRECTORY": folder}
    with Path(folder, "log").open("wb") as log:
        process = start(stack, command, stdout=log, stderr=log, env=environment)
    url = f"http://{addresses[0]}"
    wait_until_ready(url, process)
    return url


def start(stack, command, **options):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
    stack.callback(stop, process)
    return process


def stop(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as held:
        return f"127.0.0.1:{held.getsockname()[1]}"


def wait_until_ready(url, process):
    end = time.monotonic() + READY_WITHIN
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            if request(url, "GET", "/readyz")[0] == 200:
                return
        time.sleep(0.05)
    raise SmokeFailed(f"the gateway is not ready (status {process.poll()})")


def check(gateway, rejecting, serving, *, stream):
    """Each answer is whole and from the serving node, and the rejecting one was asked too."""
    for _ in range(ASKED):
        text = ask_stream(gateway) if stream else ask_json(gateway)
        if not text.startswith("Hello from serves."):
            raise SmokeFailed(f"stream={stream}: another answer than the serving node's: {text!r}")
    outcomes = {name: outcomes_of(url, stream) for name, url in (("r", rejecting), ("s", serving))}
    if set(outcomes["r"]) != {"model_not_found"}:
        raise SmokeFailed(f"stream={stream}: the first node rejected nothing: {outcomes['r']}")
    if outcomes["s"] != ["served"] * ASKED:
        raise SmokeFailed(f"stream={stream}: the second node did not serve all: {outcomes['s']}")


def ask_json(gateway):
    body = json.loads(chat(gateway, stream=False))
    return body["choices"][0]["message"]["content"]


def ask_stream(gateway):
    lines = chat(gateway, stream=True).decode().split("\n\n")
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    if data[-1:] != ["[DONE]"]:
        raise SmokeFailed("a stream did not end with [DONE]")
    choices = [json.loads(one)["choices"][0] for one in data[:-1]]
    return "".join(one["delta"].get("content") or "" for one in choices)


def chat(gateway, *, stream):
    body = {
        "model": MODELS[stream],
        "stream": stream,
        "messages": [{"role": "user", "content": "hi"}],
    }
    try:
        status, answer = request(gateway, "POST", "/v1/chat/completions", json.dumps(body))
    except (OSError, http.client.HTTPException) as error:
        raise SmokeFailed(f"stream={stream}: the client got no answer: {error}") from None
    if status != 200:
        raise SmokeFailed(f"stream={stream}: the client got HTTP {status}")
    return answer


def outcomes_of(node, stream):
    seen = json.loads(request(node, "GET", "/_sim/requests")[1])["requests"]
    return [one["outcome"] for one in seen if one["stream"] is stream]


def request(url, method, path, body=None):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
