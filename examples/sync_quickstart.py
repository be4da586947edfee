"""A conversation that is remembered: `python -m tools.engine run python -m examples.sync_quickstart`."""

import os

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph

from langgraph.checkpoint.dynamodb import DynamoDBSaver


def reply(state: MessagesState) -> MessagesState:
    """Answer without a model, to keep the example free of accounts."""
    return {"messages": [AIMessage(f"This thread has {len(state['messages'])} messages.")]}


# boto3 finds region, credentials and AWS_ENDPOINT_URL_DYNAMODB in the environment.
saver = DynamoDBSaver(os.environ.get("TABLE_NAME", "langgraph-checkpoints"))
saver.setup()  # Creates the table on a local engine; on AWS, deploy the template instead.

agent = StateGraph(MessagesState).add_node(reply).add_edge(START, "reply").compile(checkpointer=saver)
thread: RunnableConfig = {"configurable": {"thread_id": "ada"}}
agent.invoke({"messages": [HumanMessage("Hello, I am Ada.")]}, thread)
result = agent.invoke({"messages": [HumanMessage("Who am I?")]}, thread)
print(result["messages"][-1].content)
