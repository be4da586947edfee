"""Runs a handler as Lambda's runtime does: imports it once, then calls it for one event after another.

    python lambda_runtime.py handler.sync_handler [module ...]

The modules are imported first. Each line of standard input is an event; each answer is a line of standard output. The
process may be stopped and continued between two events, as Lambda freezes and thaws an execution environment.
"""

import importlib
import json
import os
import sys


def main() -> None:
    """Serve events until standard input ends."""
    os.environ["_HANDLER"] = sys.argv[1]
    module_name, function_name = sys.argv[1].rsplit(".", 1)
    for name in sys.argv[2:]:
        importlib.import_module(name)
    # Whatever the handler prints goes to the log, so that it cannot be taken for an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    sys.stdout = sys.stderr
    handler = getattr(importlib.import_module(module_name), function_name)
    for line in sys.stdin:
        try:
            answer = {"result": handler(json.loads(line), None)}
        except Exception as error:  # noqa: BLE001  # Lambda too turns any exception into an answer, and goes on.
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
