"""`python -m langgraph.checkpoint.dynamodb`: what needs no extra of the command line."""

from .cli.printed import main

if __name__ == "__main__":
    main()
