"""Many users at once, none of whom sees another one's: `python -m examples.many_users examples/agent.yaml 100`.

A user is a thread, and a thread is what isolates. On a local engine: put `python -m tools.engine run` before it.
"""

import asyncio
import secrets
import sys

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph

from langgraph.checkpoint.dynamodb import create_checkpointer


async def reply(state: MessagesState) -> MessagesState:
    """Repeat all that the user has said."""
    said = [str(message.content) for message in state["messages"] if message.type == "human"]
    return {"messages": [AIMessage(" ".join(said))]}


async def main(file: str, count: str) -> None:
    """Let as many users talk at the same time, and look whether each is answered by what they said themselves."""
    builder = StateGraph(MessagesState).add_node(reply).add_edge(START, "reply")
    async with create_checkpointer(file) as checkpointer:
        agent = builder.compile(checkpointer=checkpointer)

        async def converse(user: str) -> bool:
            thread: RunnableConfig = {"configurable": {"thread_id": f"users/{user}"}}
            said = [f"I am {user}.", f"My secret is {secrets.token_hex(4)}."]
            for text in said:
                state = await agent.ainvoke({"messages": [HumanMessage(text)]}, thread)
            # A user who has been here before has said more.
            return str(state["messages"][-1].content).endswith(" ".join(said))

        answers = await asyncio.gather(*(converse(f"user-{number}") for number in range(int(count))))
    print(f"{sum(answers)} of {len(answers)} users were answered by what they had said themselves.")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m examples.many_users FILE COUNT")
    asyncio.run(main(*sys.argv[1:]))
