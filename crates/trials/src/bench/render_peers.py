"""Compares what crawlers request while they render pages, by the log of the servers.

Usage: render_peers.py CRAWL BROWSER LIBRARIES FONTS NODE_MODULES [NAME...]

Run it with a Python that has scrapy-playwright. NODE_MODULES is a folder in which
`npm install crawlee playwright @spider-rs/spider-rs @spider-rs/spider-rs-linux-x64-gnu` ran.
Names select programs. Each renders the same pages from loopback, with its own most polite settings.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES = 8
# The site, a host with scripts for other sites, and a host of a private network.
SITE, SCRIPTS, INNER = "127.0.0.1", "127.0.0.2", "127.0.0.3"
RULES = {
    SITE: "User-agent: *\nDisallow: /private/\n",
    SCRIPTS: "User-agent: *\nCrawl-delay: 2\nDisallow: /ads/\n",
    INNER: "User-agent: *\nDisallow:\n",
}
DISALLOWED = {SITE: "/private/", SCRIPTS: "/ads/"}
SHELL = """<!doctype html><title>..</title><div id=root></div>
<script src="/app.js"></script>
<script src="http://{scripts}/shared.js"></script>
<script src="http://{scripts}/ads/ad.js"></script>
<script>show()</script>"""
APP = """async function show() {
  const answer = await fetch('/api' + location.pathname);
  const page = await answer.json();
  document.getElementById('root').innerHTML = page.html;
  const read = (url) => fetch(url).then((answer) => answer.text()).catch(() => {});
  await read('/private/visitor.json');
  await read('http://INNER/keys');
}"""


class Web:
    """Three hosts on one port, and a log of the requests to them."""

    def __init__(self):
        self.log = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                begin, host = time.monotonic(), self.server.server_address[0]
                kind, body = web.answer(host, self.path)
                body = body.encode()
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "text/html")
                self.send_header("Content-Length", str(len(body)))
                cache = "max-age=600" if kind == "text/javascript" else "no-store"
                self.send_header("Cache-Control", cache)
                self.send_header("Access-Control-Allow-Origin", "*")
                self.end_headers()
                self.wfile.write(body)
                web.log.append((host, self.path, begin, time.monotonic()))

            def log_message(self, *args):
                pass

        self.servers = [ThreadingHTTPServer((SITE, 0), Handler)]
        self.port = self.servers[0].server_address[1]
        self.servers += [ThreadingHTTPServer((host, self.port), Handler) for host in (SCRIPTS, INNER)]
        for server in self.servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def at(self, host, path=""):
        return f"{host}:{self.port}{path}"

    def answer(self, host, path):
        if path == "/robots.txt":
            return "text/plain", RULES[host]
        if host == SCRIPTS and path.endswith(".js"):
            return "text/javascript", "window.shared = true;"
        if host == INNER:
            return "application/json", "{}"
        if path == "/app.js":
            return "text/javascript", APP.replace("INNER", self.at(INNER))
        if path.startswith("/api/"):
            links = "".join(f"<p><a href=/{page}>Page {page}</a>" for page in range(PAGES))
            return "application/json", json.dumps({"html": "Much text. " * 100 + links})
        if path == "/private/visitor.json":
            return "application/json", "{}"
        if path == "/" or path[1:].isdigit():
            return "text/html", SHELL.format(scripts=self.at(SCRIPTS))
        return None, "Not found"


def table_row(name, log, seconds):
    def shortest_gap(host):
        times = sorted((begin, end) for at, _, begin, end in log if at == host)
        gaps = [later[0] - earlier[1] for earlier, later in zip(times, times[1:])]
        return f"{max(0, min(gaps)) * 1000:.0f} ms" if gaps else "none"

    hosts = [host for host in RULES if any(at == host for at, *_ in log)]
    ordered = sorted(log, key=lambda entry: entry[2])
    first = {host: next(path for at, path, *_ in ordered if at == host) for host in hosts}
    count = Counter((host, path) for host, path, *_ in log)
    documents = [path for host, path in count if host == SITE and (path == "/" or path[1:].isdigit())]
    rendered = sum(1 for host, path in count if host == SITE and path.startswith("/api/"))
    shared = [count[SITE, "/app.js"], count[SCRIPTS, "/shared.js"]]
    disallowed = sum(1 for host, path, *_ in log if path.startswith(DISALLOWED.get(host, "none")))
    cells = [
        name,
        f"{rendered} of {PAGES + 1}",
        f"{sum(path == '/robots.txt' for path in first.values())} of {len(hosts)}",
        disallowed,
        f"{shortest_gap(SITE)}, {shortest_gap(SCRIPTS)}",
        max((count[SITE, path] for path in documents), default=0),
        " and ".join(map(str, shared)),
        sum(1 for host, *_ in log if host == INNER),
        f"{seconds:.0f} s",
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


CRAWLEE = """
import { PlaywrightCrawler, Configuration } from 'crawlee';
const crawler = new PlaywrightCrawler({
    respectRobotsTxtFile: true, sameDomainDelaySecs: 1, maxConcurrency: 1, navigationTimeoutSecs: 60,
    launchContext: { launchOptions: { executablePath: process.argv[3], headless: true } },
    async requestHandler({ page, enqueueLinks }) {
        await page.waitForLoadState('networkidle');
        await enqueueLinks({ strategy: 'same-hostname' });
    },
}, new Configuration({ persistStorage: false }));
await crawler.run([process.argv[2]]);
"""

SCRAPY = """
import sys
import scrapy
from scrapy.crawler import CrawlerProcess

start, browser = sys.argv[1:]

class Pages(scrapy.Spider):
    name = "pages"
    custom_settings = {
        "ROBOTSTXT_OBEY": True, "DOWNLOAD_DELAY": 1, "RANDOMIZE_DOWNLOAD_DELAY": False,
        "CONCURRENT_REQUESTS": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "AUTOTHROTTLE_ENABLED": True,
        "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False,
        "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
        "DOWNLOAD_HANDLERS": {
            "http": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler",
            "https": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler",
        },
        "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": browser},
    }

    async def start(self):
        yield self.request(start)

    def request(self, url):
        from scrapy_playwright.page import PageMethod
        methods = [PageMethod("wait_for_load_state", "networkidle")]
        return scrapy.Request(url, meta={"playwright": True, "playwright_page_methods": methods})

    def parse(self, response):
        for link in response.css("a::attr(href)").getall():
            yield self.request(response.urljoin(link))

process = CrawlerProcess()
process.crawl(Pages)
process.start()
"""

SPIDER = """
const { Website } = require('@spider-rs/spider-rs');
(async () => {
    const website = new Website(process.argv[2]).withRespectRobotsTxt(true).withDelay(1000)
        .withChromeIntercept(true, true).withWaitForIdleNetwork(30, 0).build();
    await website.crawl(null, false, true);
})();
"""


def commands(start, other, crawl, browser, modules, folder):
    """Returns the command of each program, and its folder."""

    def script(name, text):
        path = os.path.join(modules, f"peers-{name}")
        with open(path, "w") as file:
            file.write(text)
        return path

    # A crawl sends nothing to private networks, except to hosts that the user names.
    ours = [crawl, "--seed", start, "--seed", other, "--render", "on", "--browser-sandbox", "off"]
    ours += ["--delay", "1s", "--sitemaps", "off", "-q", "--output", os.path.join(folder, "out")]
    return {
        "crawl": ours,
        "Crawlee": ["node", script("crawlee.mjs", CRAWLEE), start, browser],
        "scrapy-playwright": [sys.executable, "-c", SCRAPY, start, browser],
        "spider": ["node", script("spider.cjs", SPIDER), start],
    }


def main(crawl, browser, libraries, fonts, modules, *names):
    print("| program | rendered pages | robots.txt first | disallowed | shortest gaps | a document | "
          "shared scripts | private host | time |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        wrapper = os.path.join(folder, "chrome")
        with open(wrapper, "w") as file:
            file.write(f"#!/bin/sh\nexport LD_LIBRARY_PATH={libraries} FONTCONFIG_FILE={fonts}\n"
                       f"exec {browser} --no-sandbox \"$@\"\n")
        os.chmod(wrapper, 0o755)
        environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", CHROME=wrapper,
                           CRAWL_BROWSER=wrapper, HOME=folder)
        web = Web()
        start, other = (f"http://{web.at(host, '/')}" for host in (SITE, SCRIPTS))
        for name, command in commands(start, other, crawl, wrapper, modules, folder).items():
            if names and name not in names:
                continue
            web.log.clear()
            begin = time.monotonic()
            ended = subprocess.run(command, cwd=modules, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, timeout=600)
            print(table_row(name, web.log, time.monotonic() - begin), flush=True)
            if ended.returncode:
                sys.exit(f"{name} ended with {ended.returncode}")


main(*sys.argv[1:])
