"""Requests captures from pywb. Reads lines of "timestamp URL", and prints lines of "status digest".

Arguments: the absolute paths of the index and of the archive's folder. With a third argument, `serve`,
pywb serves the captures to browsers instead: prints its port, and stops at the end of the input.
"""

from gevent.monkey import patch_all

patch_all()

import base64
import gzip
import hashlib
import logging
import sys

from gevent.fileobject import FileObjectThread
from gevent.pywsgi import WSGIServer
from pywb.apps.frontendapp import FrontEndApp
from werkzeug.test import Client

# Keep pywb's message about a missing config.yaml out of our output.
answers, sys.stdout = sys.stdout, sys.stderr
logging.disable(logging.CRITICAL)
index, folder = sys.argv[1:3]
config = {"collections": {"crawl": {"index": index, "archive_paths": folder}}}
app = FrontEndApp(custom_config=config)
if sys.argv[3:] == ["serve"]:
    server = WSGIServer(("127.0.0.1", 0), app, log=None)
    server.start()
    print(server.server_port, file=answers, flush=True)
    # A plain read would block the server.
    FileObjectThread(sys.stdin.buffer, "rb").read()
    sys.exit()
client = Client(app)
for line in sys.stdin.read().splitlines():
    timestamp, url = line.split(" ", 1)
    # `id_` requests the archived bytes, without pywb's changes to links.
    answer = client.get(f"/crawl/{timestamp}id_/{url}")
    body = answer.get_data()
    if answer.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    digest = base64.b32encode(hashlib.sha1(body).digest()).decode()
    print(answer.status_code, f"sha1:{digest}", file=answers, flush=True)
