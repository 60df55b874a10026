"""llmgw: a gateway daemon between LLM clients and the nodes and accounts that answer them."""

from llmgw.compiled import IS_COMPILED  # before all else: it decides how the rest is imported

__version__ = "0.1.0"
__all__ = ["IS_COMPILED", "__version__"]
