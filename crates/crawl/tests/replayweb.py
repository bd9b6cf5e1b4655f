"""Opens captures in ReplayWeb.page, in Chromium, and fails where one does not show its page.

A line of JSON comes in: the folder of ReplayWeb.page, the folder of the archive, and captures: the
file of the archive that is opened, a timestamp, a URL, and the HTML that was archived. There may
also be images: a file, a timestamp, a URL, and the SHA-256 of the bytes. And where pywb serves the
archive, which then has to show all captures too.
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

# The longest wait for anything; a wait ends as soon as what it waits for is there.
PATIENCE_MS = 60_000
POLL_MS = 20


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves the two folders. Captures of an index are read by ranges."""

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
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        path = self.translate_path(self.path)
        if not asked or not os.path.isfile(path):
            return super().do_GET()
        size = os.path.getsize(path)
        first = int(asked[1])
        last = min(int(asked[2] or size), size - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        with open(path, "rb") as file:
            file.seek(first)
            self.wfile.write(file.read(last - first + 1))


def shown(page, timestamp, url, expected):
    """Waits for the frame that shows a capture with this text; scripts may still write it. Returns
    the frame, and the time of the record it came from."""
    end = f"/{timestamp}mp_/{url}"
    text = None
    for _ in range(PATIENCE_MS // POLL_MS):
        for frame in page.frames:
            try:
                if frame.url.endswith(end) and frame.evaluate("document.readyState") == "complete":
                    of = frame.evaluate("globalThis.wbinfo?.timestamp")
                    text = frame.inner_text("body")
                    if text == expected:
                        return frame, of
            except Error:
                pass  # The frame has just gone on to another page.
        page.wait_for_timeout(POLL_MS)
    frames = [frame.url for frame in page.frames]
    raise AssertionError(f"{url} of {timestamp} shows {text!r}, not {expected!r}: {frames}")


def image_digest(page, prefix, timestamp, url):
    """The SHA-256 of the bytes that the viewer has for an image."""
    script = """async (address) => {
        const answer = await fetch(address);
        const bytes = await answer.arrayBuffer();
        return [answer.status, answer.headers.get("content-type"), Array.from(new Uint8Array(bytes))];
    }"""
    status, kind, image = page.evaluate(script, f"{prefix}/{timestamp}id_/{url}")
    assert (status, kind) == (200, "image/png"), (url, status, kind)
    return hashlib.sha256(bytes(image)).hexdigest()


def main():
    told = json.loads(sys.stdin.readline())
    folders = {"viewer": told["viewer"], "archive": told["archive"]}
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
            executable_path=os.environ["CRAWL_CHROMIUM"], env=environment, timeout=PATIENCE_MS * 3
        )
        plain = browser.new_page()
        for source, timestamp, url, html in told["captures"]:
            view = urllib.parse.urlencode({"view": "resources", "url": url, "ts": timestamp})
            if source != opened:
                opened = source
                page = browser.new_context().new_page()
                page.on("request", lambda request: elsewhere.append(request.url))
                page.goto(f"{origin}/viewer/?source={origin}/archive/{source}#{view}")
            else:
                page.evaluate("view => { location.hash = view }", view)
            plain.set_content(html)
            frame, of = shown(page, timestamp, url, plain.inner_text("body"))
            # A file of records is read as a whole; there and in a WACZ file a revisit is told as
            # what it refers to.
            is_index = source.endswith(".cdxj")
            assert not is_index or of == timestamp, f"{source}: {url} of {timestamp} is shown as of {of}"
            prefix = frame.url.removesuffix(f"/{timestamp}mp_/{url}")
            for of_source, image_timestamp, image, digest in told.get("images", []):
                if of_source == source:
                    assert image_digest(page, prefix, image_timestamp, image) == digest, (source, image)
        pywb = told.get("pywb")
        for _, timestamp, url, html in told["captures"] if pywb else []:
            page = browser.new_context().new_page()
            page.on("request", lambda request: elsewhere.append(request.url))
            page.goto(f"{pywb}/crawl/{timestamp}/{url}")
            plain.set_content(html)
            shown(page, timestamp, url, plain.inner_text("body"))
        browser.close()
    ours = tuple(filter(None, (origin, pywb, "blob:", "data:")))
    elsewhere = [url for url in elsewhere if not url.startswith(ours)]
    assert not elsewhere, f"asked elsewhere: {elsewhere}"


if __name__ == "__main__":
    main()
