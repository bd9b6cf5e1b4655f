"""Asks pywb for captures: lines of "timestamp URL" come in, lines of "status digest" go out.

Arguments: the index and the folder of the archive, both absolute.
"""

from gevent.monkey import patch_all

patch_all()

import base64
import gzip
import hashlib
import logging
import sys

from pywb.apps.frontendapp import FrontEndApp
from werkzeug.test import Client

# pywb itself prints that there is no config.yaml.
answers, sys.stdout = sys.stdout, sys.stderr
logging.disable(logging.CRITICAL)
index, folder = sys.argv[1:]
config = {"collections": {"crawl": {"index": index, "archive_paths": folder}}}
client = Client(FrontEndApp(custom_config=config))
for line in sys.stdin.read().splitlines():
    timestamp, url = line.split(" ", 1)
    # "id_" asks for what was archived, without pywb's changes to links.
    answer = client.get(f"/crawl/{timestamp}id_/{url}")
    body = answer.get_data()
    if answer.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    digest = base64.b32encode(hashlib.sha1(body).digest()).decode()
    print(answer.status_code, f"sha1:{digest}", file=answers, flush=True)
