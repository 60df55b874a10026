"""A process of its own that makes transitions of one circuit as fast as it can."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from llmgw.core.circuit import CircuitKey, Failed
from llmgw.core.config import CircuitsConfig
from llmgw.core.types import AssignmentId, PoolName, RouteClass
from llmgw.store.store import open_store

KEY = CircuitKey(PoolName("blue"), AssignmentId("blue/a"), "llama", RouteClass.SSE)
CONFIG = CircuitsConfig(failure_threshold=1_000_000)
AT_ONCE = 20


async def main(url: str, state_dir: str, instance: str, count: int) -> None:
    store = await open_store(url, state_dir=Path(state_dir), instance=instance)
    writer = asyncio.create_task(store.writer.run())
    for _ in range(count // AT_ONCE):
        await asyncio.gather(
            *(
                store.circuits.transition(KEY, Failed("x"), now=1.0, config=CONFIG)
                for _ in range(AT_ONCE)
            )
        )
    await store.close()
    await writer


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4], int(sys.argv[4])))
