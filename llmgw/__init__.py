"""llmgw: a gateway daemon between LLM clients and the nodes and accounts that answer them."""

__version__ = "0.1.0"
