"""Runs every check in Chromium, each in a browser context of its own.

A check is a function whose name starts with `check_`. It fails if it raises an exception, the
console shows an error, the content security policy is violated, or a request goes to a server
outside the test.
"""

import faulthandler
import json
import os
import sys
import time
import traceback

from playwright.sync_api import expect, sync_playwright

import accessibility
import appearance
import axe_checks
import embedded_box
import mirror
import running_crawl
import search_page

SETUP = json.loads(os.environ["CRAWL_SETUP"])

# Run only checks whose names contain this text.
ONLY = os.environ.get("CRAWL_CHECKS", "")

# The maximum time of all checks together, about twenty times what they usually take.
TIMEOUT_S = 600
# The maximum time of any wait, which ends as soon as its condition holds.
TIMEOUT_MS = 60_000

REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy violated: ${event.violatedDirective} ${event.blockedURI}`));
"""


class BrowserSession:
    """The browser contexts of a check, and the addresses and files that the test has set up."""

    def __init__(self, browser):
        self.browser = browser
        self.setup = SETUP
        self.contexts = []
        self.errors = []
        self.requests = []

    def page(self, watched=True, **options):
        """Opens a page in a new context. If `watched` is true, an error on its console fails the check."""
        options.setdefault("viewport", {"width": 1000, "height": 800})
        context = self.browser.new_context(**options)
        context.set_default_timeout(TIMEOUT_MS)
        self.contexts.append(context)
        page = context.new_page()
        page.add_init_script(REPORT_VIOLATIONS)
        page.on("request", lambda request: self.requests.append(request.url))
        if watched:
            page.on("console", lambda message: self.record_console(message.type, message.text))
            page.on("pageerror", lambda error: self.record_console("error", str(error)))
        return page

    def record_console(self, kind, text):
        if kind in ("error", "warning"):
            self.errors.append(f"{kind}: {text}")

    def end(self):
        for context in self.contexts:
            cookies = context.cookies()
            if cookies:
                self.errors.append(f"cookies: {cookies}")
            context.close()
        known = (*(SETUP[name] for name in ("search", "site", "other", "live")), "file://")
        others = [url for url in self.requests if not url.startswith(known)]
        if others:
            self.errors.append(f"requests to other servers: {others}")
        assert not self.errors, "; ".join(self.errors)


def checks():
    for module in (search_page, accessibility, appearance, axe_checks, embedded_box, running_crawl, mirror):
        for name, check in vars(module).items():
            if name.startswith("check_") and ONLY in f"{module.__name__}.{name}":
                yield f"{module.__name__}.{name.removeprefix('check_')}", check


def main():
    # If the browser's driver hangs, print where, and exit.
    faulthandler.dump_traceback_later(TIMEOUT_S, exit=True)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": os.environ["CRAWL_CHROMIUM_LIBRARIES"],
        "FONTCONFIG_FILE": os.environ["CRAWL_CHROMIUM_FONTS"],
    }
    failed = []
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["CRAWL_CHROMIUM"], env=environment, timeout=TIMEOUT_MS * 3
        )
        for name, check in checks():
            begin = time.monotonic()
            session = BrowserSession(browser)
            try:
                check(session)
                session.end()
            except Exception:  # run the other checks whatever happened
                traceback.print_exc()
                failed.append(name)
            print(f"{time.monotonic() - begin:6.1f} s  {name}", file=sys.stderr)
        browser.close()
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
