"""The process in which one submission runs: `python sandbox.py LINE OPTIONS`.

It is told the notebook's cells, executes them, then answers calls from the process that grades it,
which holds the right answers and the points. Neither is here: `checker` is only `checker.given`,
with a `check` that notes which function the student hands in. What goes back is JSON, so whatever a
submission does to this process, it can only change its own answers.
"""

import io
import json
import linecache
import os
import pickle
import re
import resource
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ANSWERS = ("policies", "disparities", "learning", "own", "examine", "grade")


class Line:
    """To and from the grading process: JSON lines out, pickles with their length in."""

    def __init__(self, number: int) -> None:
        self.incoming, self.outgoing = os.fdopen(number, "rb"), os.fdopen(os.dup(number), "w")

    def say(self, **message: Any) -> None:
        self.outgoing.write(json.dumps(message) + "\n")
        self.outgoing.flush()

    def hear(self) -> Any:
        size = int.from_bytes(self.incoming.read(8), "big")
        return pickle.loads(self.incoming.read(size)) if size else None


def limit(memory: float, block_sockets: bool) -> None:
    """No more memory (in GB) than this, no core dumps; without namespaces, no sockets either."""
    size = int(memory * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if block_sockets:
        socket.socket = NoSocket  # type: ignore[misc]


class NoSocket(socket.socket):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise PermissionError("a submission has no network")


class Desk:
    """What a notebook sees as `checker`: the same names, but `check` only takes note."""

    def __init__(self, line: Line) -> None:
        self.line, self.seed, self.handed = line, 0, dict[str, tuple[Any, ...]]()

    def begin(self, seed: int) -> Any:
        from checker import given

        self.seed = int(seed)
        return given.course_data(self.seed)

    def three_documents(self) -> Any:
        self.line.say(documents=self.seed)
        return self.line.hear()

    def check(self, task: str, *answers: Any) -> int:
        self.handed[task] = answers
        return 0

    def score(self) -> int:
        return 0

    def install(self) -> None:
        """Make this the module `checker`; whatever knows an answer cannot be imported."""
        package = ModuleType("checker")
        package.__path__ = [str(Path(__file__).parent)]
        sys.modules["checker"] = package
        for name in ANSWERS:
            sys.modules[f"checker.{name}"] = None  # type: ignore[assignment]
        from checker import given

        for name in ("LAMBDAS", "settings", "attempt", "Documents"):
            setattr(package, name, getattr(given, name))
        for name in ("begin", "three_documents", "check", "score"):
            setattr(package, name, getattr(self, name))


def cells_of(notebook: Path) -> list[str]:
    """The code cells of a notebook as plain Python: a line for IPython alone does nothing."""
    made = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            source = cell["source"]
            source = source if isinstance(source, str) else "".join(source)
            made.append(re.sub(r"^(\s*)[%!?].*$", r"\1pass", source, flags=re.M))
    return made


def run(cells: list[str], skip: set[int], line: Line) -> None:
    """Execute the cells in order, in one namespace; an error ends its cell only."""
    names: dict[str, Any] = {"__name__": "__main__", "display": print}
    for number, source in enumerate(cells):
        if number in skip:
            continue
        error, file = "", f"<cell {number + 1}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            exec(compile(source, file, "exec"), names)
        except (Exception, SystemExit, KeyboardInterrupt) as raised:
            error = f"{type(raised).__name__}: {raised}"
        line.say(cell=number, error=error[:500])


def serve(line: Line, desk: Desk) -> None:
    """Answer calls until the other side hangs up."""
    from checker.calls import Answer, as_answer, call

    line.say(seed=desk.seed, handed=sorted(desk.handed))
    while (asked := line.hear()) is not None:
        task, place, inputs, forbid, upstream = asked
        given = desk.handed.get(task, ())
        if len(given) <= place:
            answer = Answer(blank=True)
        elif inputs is None:
            answer = as_answer(given[place], {})
        else:
            answer = call(given[place], inputs, forbid, upstream)
        line.say(answer=answer.packed())


def main(number: str, options: str) -> None:
    wanted = json.loads(options)
    line = Line(int(number))
    limit(wanted["memory"], wanted["block_sockets"])
    sys.path[0] = wanted["path"]
    sys.stdin = io.StringIO()
    desk = Desk(line)
    desk.install()
    run(line.hear(), set(wanted["skip"]), line)
    serve(line, desk)


if __name__ == "__main__":
    main(*sys.argv[1:])
