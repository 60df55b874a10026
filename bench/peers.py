"""How each gateway is started; one that is not installed is left out."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = HERE / ".work"  # configurations, logs and state of the running peers
PEERS = HERE / ".peers"  # a virtual environment for those that come from PyPI
KEY = "sk-bench-loopback-only"
NODES = (19001, 19002)


@dataclass(frozen=True)
class Peer:
    name: str
    command: list[str]
    port: int
    ready: str
    environment: dict[str, str] = field(default_factory=dict)


def find_peers(names: list[str]) -> list[Peer]:
    WORK.mkdir(exist_ok=True)
    makers = {"nginx": _nginx, "vllm-router": _vllm_router, "smg": _smg, "llmgw": _llmgw}
    found = [(name, makers[name]()) for name in names]
    for name, peer in found:
        if peer is None:
            print(f"{name} is not installed: left out", file=sys.stderr)
    return [peer for _, peer in found if peer is not None]


def llmgw_config(
    path: Path, *, ports: range | tuple[int, ...] = NODES, keys: int = 1, more: str = ""
) -> Path:
    """Everything on: keys with a model policy, circuits, rows in SQLite, metrics, access log."""
    nodes = "".join(
        f'[[nodes]]\nname = "n{port}"\nurl = "http://127.0.0.1:{port}"\n' for port in ports
    )
    tokens = [KEY, *(f"sk-bench-other-{number:08}" for number in range(1, keys))]
    entries = "".join(
        f'[[auth.keys]]\nname = "k{number}"\npool = "cluster"\nmodels = ["m*"]\n'
        f'digest = "sha256:{sha256(token.encode()).hexdigest()}"\n'
        for number, token in enumerate(tokens)
    )
    path.write_text(
        '[cluster]\nname = "bench"\n[gateway]\nlisten = "127.0.0.1:18000"\n'
        'metrics_listen = "127.0.0.1:18100"\n[log]\nformat = "json"\nlevel = "info"\n'
        f'{more}{nodes}[[models.available]]\nname = "m1"\n{entries}'
    )
    return path


def _llmgw() -> Peer:
    config = llmgw_config(WORK / "llmgw.toml")
    program = os.environ.get("LLMGW", str(Path(sys.executable).with_name("llmgw")))
    state = WORK / "state"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir()
    command = [program, "serve", "-c", str(config)]
    return Peer("llmgw", command, 18000, "/readyz", {"STATE_DIRECTORY": str(state)})


def _nginx() -> Peer | None:
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        return None
    config = WORK / "nginx.conf"
    config.write_text(
        f"worker_processes 1; daemon off; error_log {WORK}/nginx.err; pid {WORK}/nginx.pid;\n"
        "worker_rlimit_nofile 20000;\nevents {{ worker_connections 8192; }}\n".replace(
            "{{", "{"
        ).replace("}}", "}")
        + "http { access_log off; client_max_body_size 64m; client_body_buffer_size 2m;\n"
        + "".join(
            f"{name}_temp_path {WORK}/nginx-{name};\n"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        + "upstream nodes { keepalive 1024;\n"
        + "".join(f"server 127.0.0.1:{port} max_fails=0;\n" for port in NODES)
        + "} server { listen 127.0.0.1:18001 backlog=4096; keepalive_requests 1000000;\n"
        "location = /ready { return 200; }\n"
        "location / { proxy_pass http://nodes; proxy_http_version 1.1; proxy_buffering off;\n"
        'proxy_set_header Connection ""; proxy_next_upstream error timeout http_429 '
        "non_idempotent; } } }\n"
    )
    return Peer("nginx", [program, "-c", str(config)], 18001, "/ready")


def _vllm_router() -> Peer | None:
    return _rust("vllm-router", [], 18003, [])


def _smg() -> Peer | None:
    more = ["--backend", "vllm", "--model-path", "m1", "--disable-tokenizer-autoload"]
    return _rust("smg", ["launch"], 18004, more)


def _rust(name: str, first: list[str], port: int, more: list[str]) -> Peer | None:
    where = os.pathsep.join((str(PEERS / "bin"), os.environ.get("PATH", "")))
    program = shutil.which(name, path=where)
    if program is None:
        return None
    urls = [f"http://127.0.0.1:{node}" for node in NODES]
    options = ["--host", "127.0.0.1", "--port", str(port), "--policy", "round_robin"]
    options += ["--log-level", "error", "--prometheus-port", str(port + 100)]
    options += ["--prometheus-host", "127.0.0.1", "--max-concurrent-requests", "8192"]
    return Peer(name, [program, *first, "--worker-urls", *urls, *options, *more], port, "/health")
