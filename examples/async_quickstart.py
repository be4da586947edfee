"""The same with asyncio: `python -m tools.engine run python -m examples.async_quickstart`."""

import asyncio
import os

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph

from langgraph.checkpoint.dynamodb import DynamoDBSaver


async def reply(state: MessagesState) -> MessagesState:
    """Answer without a model, to keep the example free of accounts."""
    return {"messages": [AIMessage(f"This thread has {len(state['messages'])} messages.")]}


async def main() -> None:
    """Say two things in one thread."""
    # The session finds region, credentials and AWS_ENDPOINT_URL_DYNAMODB in the environment.
    async with DynamoDBSaver(os.environ.get("TABLE_NAME", "langgraph-checkpoints")) as saver:
        await saver.asetup()  # Creates the table on a local engine; on AWS, deploy the template instead.

        agent = StateGraph(MessagesState).add_node(reply).add_edge(START, "reply").compile(checkpointer=saver)
        thread: RunnableConfig = {"configurable": {"thread_id": "ada"}}
        await agent.ainvoke({"messages": [HumanMessage("Hello, I am Ada.")]}, thread)
        result = await agent.ainvoke({"messages": [HumanMessage("Who am I?")]}, thread)
        print(result["messages"][-1].content)


if __name__ == "__main__":
    asyncio.run(main())
