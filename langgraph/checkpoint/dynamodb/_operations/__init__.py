"""What the saver does: one module for each of its methods, named after it, and what several of them share.

Each operation is a generator of steps (`_runtime.steps`), so it is written once for both drivers.

    put, put_writes, put_with_writes    what is stored; `draft` has what is about to be
    get, list, delta_history            what is read; `reads` finds checkpoints and loads what they name
    delete                              delete_thread, delete_for_runs, prune: what goes; `collect` takes it out
    copy, setup                         another thread with the same content; the table for development
    threads                             what belongs to a thread as a whole: its epoch, claims and namespaces
"""
