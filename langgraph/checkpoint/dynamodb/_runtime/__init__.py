"""How an operation is run: the steps it yields, the drivers that perform them, clients, requests and memory.

It uses the format, and knows no operation.
"""
