"""Whole JSON answers, shaped as a real vLLM shapes them; its oddities are kept on purpose."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Sequence
from typing import Final

Json = dict[str, object]

WORDS: Final = (
    *("The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "while", "a"),
    *("patient", "gateway", "carries", "every", "word", "from", "the", "node", "that"),
    *("answers", "to", "the", "client", "that", "asked."),
)


class Refused(Exception):
    """A request that a node turns down, with the answer that says so."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


# --- errors


def error(status: int, kind: str, message: str, param: str | None = None) -> Json:
    """vLLM's error object: `code` is the status as a number."""
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


def unknown_model(path: str) -> Json:
    message = "The model does not exist."
    if path.startswith("/v1/messages"):  # neither param nor code there
        return {"type": "error", "error": {"type": "NotFoundError", "message": message}}
    return error(404, "NotFoundError", message, "model")


def coded_model_not_found() -> Json:
    """As hosted providers say it: the code is a string, and it is the one to go by."""
    return {
        "error": {
            "message": "The model does not exist or you do not have access to it.",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }
    }


def unknown_response() -> Json:
    return error(404, "invalid_request_error", "Response not found.", "response_id")


def bad_json(position: int) -> Json:
    return error(400, "Bad Request", "Invalid JSON.", f"body.{position}")


def too_many_tokens(context: int) -> Json:
    message = f"max_tokens must be from 1 to {context}."
    return error(400, "BadRequestError", message, "max_tokens")


def engine_died(status: int = 500) -> Json:
    kind = {429: "RateLimitError", 503: "ServiceUnavailableError"}.get(
        status, "InternalServerError"
    )
    return error(status, kind, "EngineCore encountered an issue.")


# --- inference


def text(name: str, tokens: int) -> list[str]:
    """The words of an answer: each is one token, and the first ones name the node."""
    words = ["Hello", "from", f"{name}.", *WORDS]
    return [words[at % len(words)] + " " for at in range(tokens)]


def usage(prompt: int, completion: int) -> Json:
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": None,
    }


def chat(id_: str, model: str, created: int, content: str, finish: str, used: Json) -> Json:
    reply: Json = {"role": "assistant", "content": content, "refusal": None, "tool_calls": []}
    choice = {
        "index": 0,
        "message": reply,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
    }
    return {
        "id": id_,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [choice],
        "usage": used,
    }


def completion(id_: str, model: str, created: int, content: str, finish: str, used: Json) -> Json:
    choice = {
        "index": 0,
        "text": content,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
    }
    return {
        "id": id_,
        "object": "text_completion",
        "created": created,
        "model": model,
        "choices": [choice],
        "usage": used,
    }


def response(id_: str, model: str, created: int, status: str, output: list[Json]) -> Json:
    return {
        "id": id_,
        "object": "response",
        "created_at": created,
        "model": model,
        "status": status,
        "output": output,
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def response_usage(prompt: int, completion: int) -> Json:
    return {
        "input_tokens": prompt,
        "output_tokens": completion,
        "total_tokens": prompt + completion,
    }


def output_message(id_: str, status: str, content: list[Json]) -> Json:
    return {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def output_text(content: str) -> Json:
    return {"type": "output_text", "text": content, "annotations": [], "logprobs": None}


def message(id_: str, model: str, content: list[Json], stop: str | None, used: Json) -> Json:
    return {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "content": content,
        "model": model,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": used,
    }


def message_usage(prompt: int, completion: int) -> Json:
    return {"input_tokens": prompt, "output_tokens": completion}


# --- lists


def model_list(models: Sequence[str], created: int, context: int) -> Json:
    return {"object": "list", "data": [_model(one, created, context) for one in models]}


def _model(name: str, created: int, context: int) -> Json:
    permission = {
        "id": f"modelperm-{created:x}",
        "object": "model_permission",
        "created": created,
        "allow_sampling": True,
        "organization": "*",
    }
    return {
        "id": name,
        "object": "model",
        "created": created,  # changes at every call
        "owned_by": "vllm",
        "root": name,
        "parent": None,
        "max_model_len": context,
        "permission": [permission],
    }


def embeddings(
    id_: str, model: str, created: int, texts: Sequence[str], size: int, *, encoded: bool
) -> Json:
    data = [
        {"index": at, "object": "embedding", "embedding": _vector(one, size, encoded=encoded)}
        for at, one in enumerate(texts)
    ]
    tokens = sum(len(one.encode()) for one in texts)
    return {
        "id": id_,
        "object": "list",
        "created": created,
        "model": model,
        "data": data,
        "usage": usage(tokens, 0),
    }


def rerank(id_: str, model: str, query: str, documents: Sequence[str]) -> Json:
    scored = sorted(
        ((similarity(query, one), at) for at, one in enumerate(documents)),
        key=lambda pair: (-pair[0], pair[1]),
    )
    results = [
        {"index": at, "document": {"text": documents[at]}, "relevance_score": value}
        for value, at in scored
    ]
    tokens = len(query) + sum(map(len, documents))
    return {"id": id_, "model": model, "usage": {"total_tokens": tokens}, "results": results}


def score(id_: str, model: str, created: int, query: str, documents: Sequence[str]) -> Json:
    data = [
        {"index": at, "object": "score", "score": similarity(query, one)}
        for at, one in enumerate(documents)
    ]
    used = usage(len(query) + sum(map(len, documents)), 0)
    return {
        "id": id_,
        "object": "list",
        "created": created,
        "model": model,
        "data": data,
        "usage": used,
    }


def similarity(one: str, other: str) -> float:
    """The share of words in common (Jaccard): enough for an order that makes sense."""
    left, right = set(one.lower().split()), set(other.lower().split())
    return len(left & right) / len(left | right) if left | right else 0.0


def _vector(content: str, size: int, *, encoded: bool) -> list[float] | str:
    seed = hashlib.shake_128(content.encode("utf-8", "surrogatepass")).digest(size)
    values = [byte / 127.5 - 1 for byte in seed]
    if not encoded:
        return values
    return base64.b64encode(struct.pack(f"<{size}f", *values)).decode()
