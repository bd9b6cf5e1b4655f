"""Runs every check in Chromium, each in a browser context of its own.

A check is a function whose name begins with `check_`. It fails by an exception, and also where
the console shows an error, the content security policy was broken, or a request went to a server
that the check does not know.
"""

import faulthandler
import json
import os
import sys
import time
import traceback

from playwright.sync_api import expect, sync_playwright

import accessible
import embedding
import live
import looks
import mirror
import reading
import searching

TOLD = json.loads(os.environ["CRAWL_TOLD"])

# A part of the names of the checks that are run; all of them where it is not set.
ONLY = os.environ.get("CRAWL_CHECKS", "")

# The longest that all checks together may take; they take a twentieth of it.
PATIENCE_S = 600
# The longest wait for anything; a wait ends as soon as what it waits for is there.
PATIENCE_MS = 60_000

LISTEN = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy broken: ${event.violatedDirective} ${event.blockedURI}`));
"""


class Look:
    """A browser context, and what is to be known of the servers."""

    def __init__(self, browser):
        self.browser = browser
        self.told = TOLD
        self.contexts = []
        self.faults = []
        self.requests = []

    def page(self, watched=True, **options):
        """A page of a new context; `watched` pages may show no error."""
        options.setdefault("viewport", {"width": 1000, "height": 800})
        context = self.browser.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        self.contexts.append(context)
        page = context.new_page()
        page.add_init_script(LISTEN)
        page.on("request", lambda request: self.requests.append(request.url))
        if watched:
            page.on("console", lambda message: self.hear(message.type, message.text))
            page.on("pageerror", lambda error: self.hear("error", str(error)))
        return page

    def hear(self, kind, text):
        if kind in ("error", "warning"):
            self.faults.append(f"{kind}: {text}")

    def end(self):
        for context in self.contexts:
            cookies = context.cookies()
            if cookies:
                self.faults.append(f"cookies: {cookies}")
            context.close()
        known = (*(TOLD[name] for name in ("search", "site", "other", "live")), "file://")
        strange = [url for url in self.requests if not url.startswith(known)]
        if strange:
            self.faults.append(f"asked elsewhere: {strange}")
        assert not self.faults, "; ".join(self.faults)


def checks():
    for module in (searching, reading, looks, accessible, embedding, live, mirror):
        for name, check in vars(module).items():
            if name.startswith("check_") and ONLY in f"{module.__name__}.{name}":
                yield f"{module.__name__}.{name.removeprefix('check_')}", check


def main():
    # Should the browser's driver itself hang, this says where and ends it.
    faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": os.environ["CRAWL_CHROMIUM_LIBRARIES"],
        "FONTCONFIG_FILE": os.environ["CRAWL_CHROMIUM_FONTS"],
    }
    failed = []
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["CRAWL_CHROMIUM"], env=environment, timeout=PATIENCE_MS * 3
        )
        for name, check in checks():
            begin = time.monotonic()
            look = Look(browser)
            try:
                check(look)
                look.end()
            except Exception:  # whatever it was, the others are run too
                traceback.print_exc()
                failed.append(name)
            print(f"{time.monotonic() - begin:6.1f} s  {name}", file=sys.stderr)
        browser.close()
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
