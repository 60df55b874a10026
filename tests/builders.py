"""Configurations, calls and keys for tests, with only what a test cares about."""

from llmgw.core.config import Account, BaseUrl, Config, ModelConfig, ModelsConfig, Node, Pool
from llmgw.core.policy import ModelPolicy, Principal
from llmgw.core.routes import BY_PATH
from llmgw.core.types import CLUSTER, KeyId, PoolName, UpstreamName
from llmgw.core.wire import Call, parse_call

POOL = PoolName("p")


def node(name: str, port: int = 8000, **fields: object) -> Node:
    return Node(UpstreamName(name), BaseUrl("http", "127.0.0.1", port), **fields)


def account(name: str, port: int = 9000, **fields: object) -> Account:
    return Account(UpstreamName(name), BaseUrl("http", "127.0.0.1", port), **fields)


def config(*upstreams: Node | Account, models: tuple[str, ...] = (), **sections: object) -> Config:
    """All nodes in pool `cluster`, all accounts in pool `p`."""
    nodes = tuple(one for one in upstreams if isinstance(one, Node))
    accounts = tuple(one for one in upstreams if isinstance(one, Account))
    return Config(
        nodes=nodes,
        accounts=accounts,
        pools=(
            Pool(CLUSTER, tuple(one.name for one in nodes)),
            Pool(POOL, tuple(one.name for one in accounts)),
        ),
        models=ModelsConfig(available=tuple(ModelConfig(name) for name in models)),
        **sections,
    )


def principal(pool: PoolName = CLUSTER, **fields: object) -> Principal:
    policy = ModelPolicy(everything=True)
    return Principal(KeyId("k"), "tester", pool, policy, **fields)


def call(
    body: bytes = b'{"model":"m","messages":[]}',
    *,
    path: str = "/v1/chat/completions",
    headers: tuple[tuple[str, str], ...] = (),
    request_id: str = "req_1",
) -> Call:
    return parse_call(
        BY_PATH[path],
        target=path,
        headers=(("content-type", "application/json"), *headers),
        body=body,
        models=ModelsConfig(),
        request_id=request_id,
    )


def streaming(path: str = "/v1/chat/completions", **fields: object) -> Call:
    return call(b'{"model":"m","stream":true}', path=path, **fields)


def form_part(
    name: str, value: str | bytes, *, filename: str | None = None, kind: str | None = None
) -> bytes:
    """One part of a form, without its boundary lines."""
    head = f'Content-Disposition: form-data; name="{name}"'
    head += f'; filename="{filename}"' if filename is not None else ""
    head += f"\r\nContent-Type: {kind}" if kind else ""
    return f"{head}\r\n\r\n".encode() + (value.encode() if isinstance(value, str) else value)


def form(*parts: bytes, boundary: str = "B") -> bytes:
    line = f"--{boundary}".encode()
    return b"".join(line + b"\r\n" + part + b"\r\n" for part in parts) + line + b"--\r\n"


def form_headers(boundary: str = "B") -> tuple[tuple[str, str], ...]:
    return (("content-type", f"multipart/form-data; boundary={boundary}"),)
