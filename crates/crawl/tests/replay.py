"""Asks pywb for captures: lines of "timestamp URL" come in, lines of "status digest" go out.

Arguments: the index and the folder of the archive, both absolute. With a third argument, `serve`,
pywb serves the captures to browsers instead: its port goes out, and the end of the input ends it.
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

# pywb itself prints that there is no config.yaml.
answers, sys.stdout = sys.stdout, sys.stderr
logging.disable(logging.CRITICAL)
index, folder = sys.argv[1:3]
config = {"collections": {"crawl": {"index": index, "archive_paths": folder}}}
app = FrontEndApp(custom_config=config)
if sys.argv[3:] == ["serve"]:
    server = WSGIServer(("127.0.0.1", 0), app, log=None)
    server.start()
    print(server.server_port, file=answers, flush=True)
    # Python's own reading would stop the server.
    FileObjectThread(sys.stdin.buffer, "rb").read()
    sys.exit()
client = Client(app)
for line in sys.stdin.read().splitlines():
    timestamp, url = line.split(" ", 1)
    # "id_" asks for what was archived, without pywb's changes to links.
    answer = client.get(f"/crawl/{timestamp}id_/{url}")
    body = answer.get_data()
    if answer.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    digest = base64.b32encode(hashlib.sha1(body).digest()).decode()
    print(answer.status_code, f"sha1:{digest}", file=answers, flush=True)
