"""A long task, and its progress watched from another process.

In two terminals:

    python -m examples.progress examples/agent.yaml run report-1
    python -m examples.progress examples/agent.yaml watch report-1

Watching only reads. Both need the same engine: AWS, or the one that `python -m tools.engine run` prints the address of.
"""

import sys
import time
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from langgraph.checkpoint.dynamodb import create_checkpointer

PAGES = 10
PAGE_SECONDS = 0.3
POLL_SECONDS = 0.1


class Report(TypedDict):
    """How far a report has come."""

    pages: int


def write_page(state: Report) -> Report:
    """Write one page."""
    time.sleep(PAGE_SECONDS)
    return {"pages": state["pages"] + 1}


def main(file: str, action: str, report_id: str) -> None:
    """Write a report, or watch it being written."""
    builder = StateGraph(Report).add_node(write_page).add_edge(START, "write_page")
    builder.add_conditional_edges(
        "write_page", lambda state: END if state["pages"] == PAGES else "write_page"
    )
    thread: RunnableConfig = {"configurable": {"thread_id": report_id}, "recursion_limit": PAGES + 1}
    with create_checkpointer(file) as checkpointer:
        task = builder.compile(checkpointer=checkpointer)
        if action == "run":
            print(f"{task.invoke({'pages': 0}, thread)['pages']} pages are written.")
            return
        seen = None
        while seen != PAGES:
            pages = task.get_state(thread).values.get("pages", 0)
            if pages != seen:
                print(f"{pages} of {PAGES} pages", flush=True)
                seen = pages
            time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python -m examples.progress FILE ACTION REPORT")
    main(*sys.argv[1:])
