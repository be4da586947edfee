"""Migration of threads to DynamoDB from LangGraph's other savers, and back; of memories; and threads as files.

`open_endpoint` opens a saver, and `migrate` moves threads. `export_thread` writes a file, which `FileEndpoint` reads.
`open_memories` reads another store, and `move_memories` moves what it has.

Example:
    ```python
    from langgraph.checkpoint.dynamodb import DynamoDBSaver
    from langgraph.checkpoint.dynamodb.migrate import migrate, open_endpoint, endpoint_of

    target = endpoint_of(DynamoDBSaver("langgraph-checkpoints"))
    with open_endpoint("postgresql://localhost/agents") as source:
        for report in migrate(source, target, source.thread_ids()):
            print(report.thread_id, report.status.value)
    ```
"""

from .endpoints import ENDPOINTS, endpoint_of, open_endpoint
from .file import Exported, FileEndpoint, export_thread
from .move import Source, Status, ThreadReport, migrate
from .saver_endpoint import SaverEndpoint
from .stores import MovedMemories, memories_of, move_memories, open_memories
from .table import TableEndpoint

__all__ = [
    "ENDPOINTS",
    "Exported",
    "FileEndpoint",
    "MovedMemories",
    "SaverEndpoint",
    "Source",
    "Status",
    "TableEndpoint",
    "ThreadReport",
    "endpoint_of",
    "export_thread",
    "memories_of",
    "migrate",
    "move_memories",
    "open_endpoint",
    "open_memories",
]
