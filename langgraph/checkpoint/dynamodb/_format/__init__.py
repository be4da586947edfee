"""What lies in the table: keys, items, their sealed content, and the limits that shape them.

Bytes and items in, bytes and items out. Nothing here makes a request, waits, or knows an operation.
"""
