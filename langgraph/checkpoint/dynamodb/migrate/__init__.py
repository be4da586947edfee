"""Migration of threads to DynamoDB from LangGraph's other savers, and back; of memories; and threads as files.

A package above the saver. Only code that moves threads imports it. `open_endpoint` opens a store, and `migrate` moves
threads. `export_thread` writes a file, and `FileStore` is a file as a source. `open_memories` reads another store, and
`move_memories` moves what it has.

Example:
    ```python
    from langgraph.checkpoint.dynamodb import DynamoDBSaver
    from langgraph.checkpoint.dynamodb.migrate import migrate, open_endpoint, store_of

    target = store_of(DynamoDBSaver("langgraph-checkpoints"))
    with open_endpoint("postgresql://localhost/agents") as source:
        for report in migrate(source, target, source.thread_ids(), verify=True):
            print(report.thread_id, report.status.value)
    ```
"""

from langgraph.checkpoint.dynamodb.migrate.endpoints import ENDPOINTS, open_endpoint, store_of
from langgraph.checkpoint.dynamodb.migrate.file import Exported, FileStore, export_thread
from langgraph.checkpoint.dynamodb.migrate.memories import (
    MEMORY_ENDPOINTS,
    MovedMemories,
    memories_of,
    move_memories,
    open_memories,
)
from langgraph.checkpoint.dynamodb.migrate.move import Source, Status, ThreadReport, migrate
from langgraph.checkpoint.dynamodb.migrate.store import SaverStore
from langgraph.checkpoint.dynamodb.migrate.table import TableStore

__all__ = [
    "ENDPOINTS",
    "MEMORY_ENDPOINTS",
    "Exported",
    "FileStore",
    "MovedMemories",
    "SaverStore",
    "Source",
    "Status",
    "TableStore",
    "ThreadReport",
    "export_thread",
    "memories_of",
    "migrate",
    "move_memories",
    "open_endpoint",
    "open_memories",
    "store_of",
]
