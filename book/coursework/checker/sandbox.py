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
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = 2**28  # bytes of the largest file that may be written


def limit(memory: float, network: str) -> None:
    """No more memory (in GB) than this, no core dumps; without a sandbox, no sockets either."""
    size = int(memory * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.__new__":
            raise PermissionError("a submission has no network")

    if network == "open":
        sys.addaudithook(refuse)  # there is no way to take it off again


class Desk(ModuleType):
    """What a notebook sees as `checker`: the same names, but `check` only takes note."""

    def __init__(self, line: int) -> None:
        super().__init__("checker", self.__doc__)
        self._incoming, self._outgoing = os.fdopen(line, "rb"), os.fdopen(os.dup(line), "w")
        self._seed, self._week = 0, 0
        self._handed = dict[str, list[Any]]()
        self._names: dict[str, Any] = {"__name__": "__main__", "display": print}
        self.__path__ = [str(Path(__file__).parent)]
        sys.modules["checker"] = self
        from checker import given

        self.__path__ = []  # nothing else of it can be imported
        self.LAMBDAS, self.settings, self.attempt = given.LAMBDAS, given.settings, given.attempt
        self._given = given

    def begin(self, seed: int, week: int | None = None) -> Any:
        self._seed = int(seed)
        self._week = int(week or 0)
        return self._given.course_data(self._seed)

    def three_documents(self) -> Any:
        self._say(documents=self._seed)
        return self._hear()

    def check(self, task: str, *answers: Any) -> int:
        self._handed[task] = self._given.asks(answers)
        return 0

    def demonstrate(self, task: str, *answers: Any) -> None:
        """An example of ours, no answer."""

    def score(self) -> int:
        return 0

    def _say(self, **message: Any) -> None:
        text = json.dumps(message, default=lambda tensor: tensor.tolist())
        print(text, file=self._outgoing, flush=True)

    def _hear(self) -> Any:
        return pickle.load(self._incoming)

    def _run(self, cells: list[str]) -> None:
        """Execute the cells in order, in one namespace; an error ends its cell only."""
        for number, source in enumerate(cells, 1):
            error, file = "", f"<cell {number}>"
            linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
            try:
                exec(compile(source, file, "exec"), self._names)
            except (Exception, SystemExit, KeyboardInterrupt) as raised:
                error = f"{type(raised).__name__}: {raised}"
            self._say(cell=number, error=error[:500])

    def _take(self, expected: dict[str, list[str]]) -> list[str]:
        """Tasks whose `check` was not run, but whose functions or numbers have their names."""
        taken = []
        for task, names in expected.items():
            if task not in self._handed and all(name in self._names for name in names):
                self._handed[task] = self._given.asks([self._names[name] for name in names])
                taken.append(task)
        return taken

    def _serve(self, expected: dict[str, list[str]]) -> None:
        """Answer calls until the other side hangs up."""
        taken = self._take(expected)
        self._say(seed=self._seed, week=self._week, handed=list(self._handed), taken=taken)
        while True:
            task, place, *question = self._hear()
            answers = self._handed.get(task, [])[place:]
            answer = answers[0](*question) if answers else self._given.Answer(blank=True)
            self._say(answer=vars(answer))


if __name__ == "__main__":
    limit(float(sys.argv[2]), sys.argv[3])
    sys.stdin = io.StringIO()
    desk = Desk(int(sys.argv[1]))
    cells, expected = desk._hear()
    desk._run(cells)
    desk._serve(expected)
