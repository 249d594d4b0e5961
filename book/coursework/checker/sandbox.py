"""The process in which one submission runs: `python sandbox.py LINE MEMORY NETWORK`.

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
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

ANSWERS = ("policies", "disparities", "learning", "own", "examine", "grade")
Say = Callable[[dict[str, Any]], None]


def limit(memory: float, network: str) -> None:
    """No more memory (in GB) than this, no core dumps; without namespaces, no sockets either."""
    size = int(memory * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.__new__":
            raise PermissionError("a submission has no network")

    if network == "open":
        sys.addaudithook(refuse)  # there is no way to take it off again


class Desk(ModuleType):
    """What a notebook sees as `checker`: the same names, but `check` only takes note."""

    def __init__(self, say: Say, hear: Callable[[], Any]) -> None:
        """Whatever knows an answer cannot be imported."""
        super().__init__("checker")
        self.__path__ = [str(Path(__file__).parent)]
        sys.modules["checker"] = self
        sys.modules.update(dict.fromkeys((f"checker.{name}" for name in ANSWERS), None))  # type: ignore[arg-type]
        from checker import given

        self.LAMBDAS, self.settings, self.attempt = given.LAMBDAS, given.settings, given.attempt
        self.course_data, self.asks, self.say, self.hear = given.course_data, given.asks, say, hear
        self.seed, self.handed = 0, dict[str, list[Any]]()

    def begin(self, seed: int) -> Any:
        self.seed = int(seed)
        return self.course_data(self.seed)

    def three_documents(self) -> Any:
        self.say({"documents": self.seed})
        return self.hear()

    def check(self, task: str, *answers: Any) -> int:
        self.handed[task] = self.asks(answers)
        return 0

    def score(self) -> int:
        return 0


def run(cells: list[str], say: Say) -> None:
    """Execute the cells in order, in one namespace; an error ends its cell only."""
    names: dict[str, Any] = {"__name__": "__main__", "display": print}
    for number, source in enumerate(cells, 1):
        error, file = "", f"<cell {number}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            exec(compile(source, file, "exec"), names)
        except (Exception, SystemExit, KeyboardInterrupt) as raised:
            error = f"{type(raised).__name__}: {raised}"
        say({"cell": number, "error": error[:500]})


def serve(say: Say, hear: Callable[[], Any], desk: Desk) -> None:
    """Answer calls until the other side hangs up."""
    from checker.given import Answer

    say({"seed": desk.seed, "handed": sorted(desk.handed)})
    while True:
        task, place, *question = hear()
        answers = desk.handed.get(task, [])
        answer = answers[place](*question) if place < len(answers) else Answer(blank=True)
        say({"answer": vars(answer)})


def main(number: str, memory: str, network: str) -> None:
    incoming, outgoing = os.fdopen(int(number), "rb"), os.fdopen(os.dup(int(number)), "w")

    def say(message: dict[str, Any]) -> None:
        print(
            json.dumps(message, default=lambda tensor: tensor.tolist()), file=outgoing, flush=True
        )

    def hear() -> Any:
        return pickle.load(incoming)

    limit(float(memory), network)
    sys.stdin = io.StringIO()
    desk = Desk(say, hear)
    run(hear(), say)
    serve(say, hear, desk)


if __name__ == "__main__":
    main(*sys.argv[1:])
