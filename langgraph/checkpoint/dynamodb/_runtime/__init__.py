"""Running operations: the steps that they yield, the drivers that perform them, clients, requests and the cache.

This layer uses the format, and knows no operation.
"""
