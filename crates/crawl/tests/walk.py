#!/usr/bin/env python3
"""Walks the HTML files of a directory as a crawl of the same files behind a web server would.

usage: walk.py ROOT [--start PATH] [--html]

Prints one line, "STATUS PATH", for each URL path that a crawl from PATH (default /) requests, sorted
bytewise. --html prints only HTML pages with status 200. Shares no code or library with the crawler,
so that tests can compare the crawler with it.

Paths map to files as in nginx with `root ROOT; index index.html;`:
  - a file: 200
  - a directory with a trailing slash: 200 with its index.html, or 403 without one
  - a directory without a trailing slash: 301 to the path with the slash
  - anything else, also a file with a trailing slash: 404
HTML files are those that nginx's mime.types calls text/html: .html, .htm and .shtml.

Follows a, area, frame, iframe, meta refresh, and link if its rel names another page, within the same
host. Links are resolved against the first base. Ignores links with rel=nofollow, ugc or sponsored,
and all links of a page with META ROBOTS nofollow.
"""

import argparse
import concurrent.futures
import functools
import html.parser
import os
import re
import sys
import urllib.parse

SITE = "http://site.invalid"
PAGE_RELS = {
    "alternate", "author", "bookmark", "canonical", "contents", "first", "help", "index", "last",
    "license", "next", "prev", "start", "tag", "up",
}
SOURCES = {"a": "href", "area": "href", "link": "href", "frame": "src", "iframe": "src"}


class Reader(html.parser.HTMLParser):
    """Collects the links of one page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.base = None
        self.nofollow = False
        self.links = set()

    def handle_starttag(self, tag, attributes):
        found = {}
        for name, value in attributes:
            found.setdefault(name, value or "")
        if tag == "base" and self.base is None and "href" in found:
            self.base = found["href"]
        elif tag == "meta":
            self.meta(found)
        elif tag in SOURCES and SOURCES[tag] in found:
            rel = set(found.get("rel", "").lower().split())
            kind = found.get("type", "text/html").lower()
            if rel & {"nofollow", "ugc", "sponsored"}:
                return
            if tag == "link" and (not rel & PAGE_RELS or "stylesheet" in rel or "html" not in kind):
                return
            self.links.add(found[SOURCES[tag]].partition("#")[0])

    def meta(self, found):
        content = found.get("content", "")
        if found.get("name", "").lower() == "robots":
            words = {word.strip().lower() for word in content.split(",")}
            self.nofollow = self.nofollow or bool(words & {"nofollow", "none"})
        if found.get("http-equiv", "").lower() == "refresh":
            target = re.match(r"\s*[\d.]*\s*[;,]?\s*(?:url\s*=\s*)?(.*)", content, re.I | re.S)
            if target and target[1].strip():
                self.links.add(target[1].strip().strip("'\""))


def canonical(base, href):
    """Returns the URL that a link leads to, without its fragment. None if it isn't an http URL.

    Implements the URL standard by hand, because urljoin drops empty segments.
    """
    href = re.sub(r"[\t\n\r]", "", href.strip("".join(map(chr, range(33))))).replace("\\", "/")
    try:
        url, base = urllib.parse.urlsplit(href), urllib.parse.urlsplit(base)
        if url.scheme not in ("", "http"):
            return None
        host, path, query = url.netloc.lower(), url.path, url.query
        if not host:
            host = base.netloc
            if not path and "?" not in href:
                query = base.query
            if not path.startswith("/"):
                path = base.path[: base.path.rfind("/") + 1] + path if path else base.path
    except ValueError:
        return None
    path = urllib.parse.quote(without_dots(path or "/"), safe="/%!$&'()*+,;=:@-._~|[]\\")
    query = urllib.parse.quote(query, safe="/%!$&()*+,;=:@-._~|[]?`{}^\\")
    return "http://" + host + path + ("?" + query if query else "")


def without_dots(path):
    kept = []
    segments = path.split("/")[1:]
    for at, segment in enumerate(segments):
        plain = re.sub("%2e", ".", segment, flags=re.I)
        if plain == "..":
            kept[-1:] = []
        elif plain != ".":
            kept.append(segment)
            continue
        if at == len(segments) - 1:
            kept.append("")
    return "/" + "/".join(kept)


def serve(root, path):
    """Returns nginx's answer: the status, and the name of the file or the target of the redirect."""
    plain, _, query = path.partition("?")
    name = re.sub("/+", "/", urllib.parse.unquote_to_bytes(plain).decode("utf-8", "replace"))
    file = os.path.join(root, name.lstrip("/"))
    if "\0" in file:
        return 400, None
    if os.path.isdir(file):
        if not name.endswith("/"):
            return 301, plain + "/" + ("?" + query if query else "")
        file = os.path.join(file, "index.html")
        return (200, file) if os.path.isfile(file) else (403, None)
    if name.endswith("/") or not os.path.isfile(file):
        return 404, None
    return 200, file


def read(file):
    with open(file, "rb") as stream:
        bytes = stream.read()
    named = re.search(rb"<meta[^>]*charset\s*=\s*[\"']?\s*([\w-]+)", bytes[:4096], re.I)
    try:
        text = bytes.decode(named[1].decode() if named else "cp1252", "replace")
    except LookupError:
        text = bytes.decode("cp1252", "replace")
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


def visit(root, path):
    """Returns the status of a path, whether it is an HTML page, and the paths that it links to."""
    status, where = serve(root, path)
    if status == 301:
        return status, False, {where}
    if status != 200 or not where.lower().endswith((".html", ".htm", ".shtml")):
        return status, False, set()
    reader = read(where)
    if reader.nofollow:
        return status, True, set()
    base = SITE + path
    if reader.base is not None:
        base = canonical(base, reader.base) or base
    targets = {canonical(base, link) for link in reader.links} - {None}
    paths = {target[len(SITE):] for target in targets if target.startswith(SITE + "/")}
    return status, True, paths


def walk(root, start):
    """Returns the status of each requested path, and the paths of HTML pages."""
    found, pages, wave = {}, set(), {start}
    with concurrent.futures.ProcessPoolExecutor() as workers:
        while wave:
            paths, wave = sorted(wave), set()
            answers = workers.map(functools.partial(visit, root), paths, chunksize=16)
            for path, (status, is_page, targets) in zip(paths, answers):
                found[path] = status
                wave |= targets
                if is_page:
                    pages.add(path)
            wave -= found.keys()
    return found, pages


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("root")
    parser.add_argument("--start", default="/")
    parser.add_argument("--html", action="store_true")
    args = parser.parse_args()
    if not os.path.isdir(args.root):
        sys.exit(f"error: no such directory: {args.root}")
    found, pages = walk(args.root, args.start)
    lines = sorted(pages if args.html else found, key=str.encode)
    for path in lines:
        print(found[path], path)
    print(f"{len(found)} paths, {len(pages)} of them HTML pages", file=sys.stderr)


if __name__ == "__main__":
    main()
