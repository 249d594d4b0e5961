"""Serve drawn lists over HTTP (chapter 14).

    python serve.py

answers http://127.0.0.1:8000/rank?user=anna&query=1&k=5. It is to
be read, not deployed. The same user sees the same list all day,
another user another list.
"""

import datetime
import json
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import torch

import fairpg_lite as fpg
from fairpg_lite.serving import seed_for

SALT = secrets.token_bytes(16)  # nobody chose it
TEMPERATURE = 2.0  # as make_fair finds it on judged queries
SCORES = [
    query.features.sum(-1)  # in place of those of your ranker
    for query in fpg.synthetic(n_queries=20, n_docs=50)
]


def ranked(user: str, query: int, k: int) -> list[int]:
    """The first k documents of a query for a user, today."""
    if not 0 <= query < len(SCORES):
        raise ValueError(f"there is no query {query}")
    today = datetime.date.today().isoformat()
    seed = seed_for(f"{user}/{query}", today, salt=SALT)
    policy = fpg.PlackettLuce(SCORES[query] / TEMPERATURE)
    generator = torch.Generator().manual_seed(seed)
    return policy.sample(k=k, generator=generator).tolist()


class Handler(BaseHTTPRequestHandler):
    """Answers GET requests with a list of documents."""

    def do_GET(self) -> None:
        asked = dict(parse_qsl(urlsplit(self.path).query))
        try:
            query = int(asked["query"])
            k = int(asked.get("k", 10))
            answer = {"ranking": ranked(asked["user"], query, k)}
            self.send_response(200)
        except KeyError as error:
            answer = {"error": f"give {error.args[0]}=..."}
            self.send_response(400)
        except ValueError as error:
            answer = {"error": str(error)}
            self.send_response(400)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of requests that went well."""


def make_server(port: int = 0) -> ThreadingHTTPServer:
    """A server on this machine only; port 0 takes a free one."""
    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    make_server(8000).serve_forever()
