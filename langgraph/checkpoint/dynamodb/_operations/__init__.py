"""The operations of the saver: one module for each method, named after it, and modules that several of them share.

Each operation is a generator of steps (`_runtime.steps`), so it is written once for both drivers.

    put, put_writes                     store a checkpoint; store the writes of a task
    compose                             from values to items and segments, without a request
    get, list, delta_history            read; `reads` finds checkpoints and loads the segments they name
    delete                              delete_thread, delete_for_runs, prune: choose checkpoints for `collect`
    delete_owner                        delete all threads of an owner, and look again
    copy, setup                         copy a thread; create the table for development
    thread_item                         thread-level state: the epoch, a deletion's claim, the namespace markers
    threads, entries                    set_thread and threads; what the directory holds of a thread
    thread_lock                         a thread's lock
    verify, overview                    for tools: check and show what is stored; `runs`
"""
