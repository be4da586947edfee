"""A conversation that goes on with every call: `python -m examples.conversation examples/agent.yaml ada "Hello"`.

The file says where it is kept: in DynamoDB, SQLite, Postgres or nowhere. On a local engine: put
`python -m tools.engine run` before it.
"""

import sys

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph

from langgraph.checkpoint.dynamodb import create_checkpointer


def reply(state: MessagesState) -> MessagesState:
    """Answer without a model, to keep the example free of accounts."""
    said = [str(message.content) for message in state["messages"] if message.type == "human"]
    return {"messages": [AIMessage(f"You have said: {', '.join(said)}")]}


def main(file: str, thread_id: str, text: str) -> None:
    """Say something in a thread, and print the answer."""
    builder = StateGraph(MessagesState).add_node(reply).add_edge(START, "reply")
    thread: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    with create_checkpointer(file) as checkpointer:
        agent = builder.compile(checkpointer=checkpointer)
        state = agent.invoke({"messages": [HumanMessage(text)]}, thread)
    print(state["messages"][-1].content)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python -m examples.conversation FILE THREAD TEXT")
    main(*sys.argv[1:])
