"""Opens captures in ReplayWeb.page in Chromium. Fails if a capture doesn't show its page.

Reads a line of JSON with the folder of ReplayWeb.page, the folder of the archive, and captures. A
capture consists of the file to open, a timestamp, a URL, and the archived HTML. `images`, if given,
has files, timestamps, URLs, and the SHA-256 of the bytes. `pywb`, if given, is the address where pywb
serves the archive, which must then show all captures too.
"""

import functools
import hashlib
import http.server
import json
import os
import re
import sys
import threading
import urllib.parse

from playwright.sync_api import Error, sync_playwright

# The maximum time of any wait, which ends as soon as its condition holds.
TIMEOUT_MS = 60_000
POLL_MS = 20


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves the two folders. Answers range requests, which read the captures of an index."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *args, folders, **rest):
        self.folders = folders
        super().__init__(*args, **rest)

    def log_message(self, *_):
        pass

    def translate_path(self, path):
        folder, _, name = urllib.parse.urlsplit(path).path.lstrip("/").partition("/")
        return os.path.join(self.folders.get(folder, os.devnull), name)

    def do_GET(self):
        range_header = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        path = self.translate_path(self.path)
        if not range_header or not os.path.isfile(path):
            return super().do_GET()
        size = os.path.getsize(path)
        first = int(range_header[1])
        last = min(int(range_header[2] or size), size - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        with open(path, "rb") as file:
            file.seek(first)
            self.wfile.write(file.read(last - first + 1))


def wait_for_capture(page, timestamp, url, expected):
    """Waits until a frame shows a capture with this text, which scripts may still be writing. Returns
    the frame, and the time of the record that it shows."""
    end = f"/{timestamp}mp_/{url}"
    text = None
    for _ in range(TIMEOUT_MS // POLL_MS):
        for frame in page.frames:
            try:
                if frame.url.endswith(end) and frame.evaluate("document.readyState") == "complete":
                    of = frame.evaluate("globalThis.wbinfo?.timestamp")
                    text = frame.inner_text("body")
                    if text == expected:
                        return frame, of
            except Error:
                pass  # The frame has just navigated to another page.
        page.wait_for_timeout(POLL_MS)
    frames = [frame.url for frame in page.frames]
    raise AssertionError(f"{url} of {timestamp} shows {text!r}, not {expected!r}: {frames}")


def image_digest(page, prefix, timestamp, url):
    """Returns the SHA-256 of an image as the viewer serves it."""
    script = """async (address) => {
        const answer = await fetch(address);
        const bytes = await answer.arrayBuffer();
        return [answer.status, answer.headers.get("content-type"), Array.from(new Uint8Array(bytes))];
    }"""
    status, kind, image = page.evaluate(script, f"{prefix}/{timestamp}id_/{url}")
    assert (status, kind) == (200, "image/png"), (url, status, kind)
    return hashlib.sha256(bytes(image)).hexdigest()


def main():
    task = json.loads(sys.stdin.readline())
    folders = {"viewer": task["viewer"], "archive": task["archive"]}
    files = functools.partial(Files, folders=folders)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": os.environ["CRAWL_CHROMIUM_LIBRARIES"],
        "FONTCONFIG_FILE": os.environ["CRAWL_CHROMIUM_FONTS"],
    }
    elsewhere, opened = [], None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["CRAWL_CHROMIUM"], env=environment, timeout=TIMEOUT_MS * 3
        )
        plain = browser.new_page()
        for source, timestamp, url, html in task["captures"]:
            view = urllib.parse.urlencode({"view": "resources", "url": url, "ts": timestamp})
            if source != opened:
                opened = source
                page = browser.new_context().new_page()
                page.on("request", lambda request: elsewhere.append(request.url))
                page.goto(f"{origin}/viewer/?source={origin}/archive/{source}#{view}")
            else:
                page.evaluate("view => { location.hash = view }", view)
            plain.set_content(html)
            frame, of = wait_for_capture(page, timestamp, url, plain.inner_text("body"))
            # In WARC and WACZ files, a revisit is shown with the time of the record it refers to.
            is_index = source.endswith(".cdxj")
            assert not is_index or of == timestamp, f"{source}: {url} of {timestamp} is shown as of {of}"
            prefix = frame.url.removesuffix(f"/{timestamp}mp_/{url}")
            for of_source, image_timestamp, image, digest in task.get("images", []):
                if of_source == source:
                    assert image_digest(page, prefix, image_timestamp, image) == digest, (source, image)
        pywb = task.get("pywb")
        for _, timestamp, url, html in task["captures"] if pywb else []:
            page = browser.new_context().new_page()
            page.on("request", lambda request: elsewhere.append(request.url))
            page.goto(f"{pywb}/crawl/{timestamp}/{url}")
            plain.set_content(html)
            wait_for_capture(page, timestamp, url, plain.inner_text("body"))
        browser.close()
    ours = tuple(filter(None, (origin, pywb, "blob:", "data:")))
    elsewhere = [url for url in elsewhere if not url.startswith(ours)]
    assert not elsewhere, f"requests to other servers: {elsewhere}"


if __name__ == "__main__":
    main()
