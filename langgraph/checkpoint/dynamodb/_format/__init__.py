"""The format of stored data: keys, items, their sealed content, and the limits that shape them.

The functions here turn bytes and items into others. None makes a request, waits, or knows an operation.
"""
