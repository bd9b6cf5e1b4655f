"""Passes the files that `crawl export` wrote to the clients of OpenSearch and Meilisearch.

Arguments: the lines and the mapping for OpenSearch, the lines and the settings for Meilisearch, and
the number of pages. The clients connect to a server on loopback that records what it receives,
because no package registry has the search engines themselves. So this checks that the client creates
the same lines from the same documents, and sends ours unchanged. It doesn't check how an engine
indexes them.
"""

import http.server
import json
import re
import sys
import threading

import meilisearch
from opensearchpy import OpenSearch, helpers

# Maximum bytes of an `_id` in OpenSearch.
MAX_ID_BYTES = 512
# Meilisearch's rule for a document's primary key.
DOCUMENT_ID = re.compile(r"[A-Za-z0-9_-]{1,511}")
TASK = {"taskUid": 1, "indexUid": "pages", "status": "enqueued", "type": "t", "enqueuedAt": "2026-01-01T00:00:00.000Z"}


class RecordingHandler(http.server.BaseHTTPRequestHandler):
    received = []

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        self.received.append((self.command, path, self.headers.get("Content-Type"), body))
        if path.endswith("_bulk"):
            actions = [json.loads(line) for line in body.splitlines()[::2]]
            done = [{"index": {"_id": action["index"]["_id"], "status": 201}} for action in actions]
            self.send({"errors": False, "items": done})
        else:
            self.send(TASK)

    do_POST = do_PUT = do_PATCH = do_GET = answer

    def send(self, answer):
        text = json.dumps(answer).encode()
        self.send_response(202 if answer is TASK else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def lines(body):
    return [json.loads(line) for line in body.splitlines()]


def opensearch(origin, written, mapping):
    client = OpenSearch([origin])
    client.indices.create(index="pages", body=mapping)
    assert json.loads(RecordingHandler.received.pop()[3]) == mapping
    rows = lines(written)
    pairs = list(zip(rows[::2], rows[1::2]))
    known = set(mapping["mappings"]["properties"])
    for action, document in pairs:
        assert set(action) == {"index"} and set(action["index"]) == {"_id"}, action
        assert 0 < len(action["index"]["_id"].encode()) <= MAX_ID_BYTES, action
        assert set(document) <= known, set(document) - known
    # The client creates the same lines from the same documents.
    actions = [{"_op_type": "index", "_id": action["index"]["_id"], "_source": document} for action, document in pairs]
    assert helpers.bulk(client, actions, index="pages") == (len(pairs), [])
    made = lines(RecordingHandler.received.pop()[3])
    for row in made[::2]:
        row["index"].pop("_index", None)
    assert made == rows, (made, rows)
    # The client sends our lines unchanged.
    client.bulk(body=written.decode(), index="pages")
    command, path, _, sent = RecordingHandler.received.pop()
    assert (command, path, sent) == ("POST", "/pages/_bulk", written), (command, path)
    assert sent.endswith(b"\n")
    return len(pairs)


def meili(origin, written, settings):
    index = meilisearch.Client(origin).index("pages")
    index.update_settings(settings)
    command, path, _, sent = RecordingHandler.received.pop()
    assert (command, path) == ("PATCH", "/indexes/pages/settings"), (command, path)
    assert json.loads(sent) == settings
    index.add_documents_ndjson(written, primary_key="id")
    command, path, kind, sent = RecordingHandler.received.pop()
    assert (command, path, sent) == ("POST", "/indexes/pages/documents", written), (command, path)
    assert kind.startswith("application/x-ndjson"), kind
    rows = lines(written)
    assert all(DOCUMENT_ID.fullmatch(row["id"]) for row in rows), rows
    assert len({row["id"] for row in rows}) == len(rows), "two documents have the same id"
    return len({row[settings["distinctAttribute"]] for row in rows})


def main():
    texts = []
    for name in sys.argv[1:5]:
        with open(name, "rb") as file:
            texts.append(file.read())
    pages = int(sys.argv[5])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), RecordingHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    assert opensearch(origin, texts[0], json.loads(texts[1])) == pages
    assert meili(origin, texts[2], json.loads(texts[3])) == pages
    assert not RecordingHandler.received, RecordingHandler.received


if __name__ == "__main__":
    main()
