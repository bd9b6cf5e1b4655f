"""Checks a static search in Chromium, served by a plain file server.

A check is a function whose name starts with `check_`. It fails if it raises an exception, the
console shows an error, the content security policy is violated, or a request goes to another
server.
"""

import functools
import http.server
import json
import os
import re
import sys
import threading
import traceback

from playwright.sync_api import expect, sync_playwright

import axe
from clipping import assert_nothing_is_clipped

# The maximum time of any wait, which ends as soon as its condition holds.
TIMEOUT_MS = 60_000

REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy violated: ${event.violatedDirective} ${event.blockedURI}`));
"""

RUN_QUERY = """async ([query, options]) => {
  const search = await CrawlSearch.open("/search/");
  const answer = await search.search(query, { limit: 50, ...options });
  return { urls: answer.results.map((result) => result.url), total: answer.total,
    correction: answer.did_you_mean, first: answer.results[0] };
}"""


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class BrowserSession:
    """A browser context, the server's address, and the test's expectations."""

    def __init__(self, browser, origin, setup):
        self.browser, self.origin, self.setup = browser, origin, setup
        self.contexts, self.errors, self.requests = [], [], []

    def page(self, path="/search/", **options):
        options.setdefault("viewport", {"width": 1000, "height": 800})
        context = self.browser.new_context(**options)
        context.set_default_timeout(TIMEOUT_MS)
        self.contexts.append(context)
        page = context.new_page()
        page.add_init_script(REPORT_VIOLATIONS)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.record_console(message.type, message.text))
        page.on("pageerror", lambda error: self.record_console("error", str(error)))
        page.goto(self.origin + path)
        return page

    def record_console(self, kind, text):
        if kind in ("error", "warning"):
            self.errors.append(f"{kind}: {text}")

    def end(self):
        for context in self.contexts:
            context.close()
        others = [url for url in self.requests if not url.startswith(self.origin)]
        assert not others, f"requests to other servers: {others}"
        assert not self.errors, "; ".join(self.errors)


def ask(page, query, **options):
    return page.evaluate(RUN_QUERY, [query, options])


def results(page):
    return page.locator(".hit .title a")


def check_words_are_split_as_in_the_index(session):
    page = session.page()
    split = "(text) => CrawlSearch.words(text).map((word) => [word.text, word.position, word.kind])"
    for case in session.setup["words"]:
        found = page.evaluate(split, case["text"])
        assert found == case["words"], f"{case['text']!r}: {found} instead of {case['words']}"


def check_queries_have_the_results_of_the_index(session):
    page = session.page()
    for case in session.setup["answers"]:
        found = ask(page, case["query"])["urls"]
        # After the pages with all words come pages with some of them, which the index omits. The
        # scores differ too, so adjacent results may be swapped.
        best = found[: len(case["urls"])]
        assert set(best) == set(case["urls"]), f"{case['query']}: {found}, not {case['urls']}"
        assert bool(found) == bool(case["urls"]), f"{case['query']}: {found}"
        assert not found or found[0] in case["urls"][:2], f"{case['query']}: {found}"


def check_prefixes_and_corrections(session):
    page = session.page()
    assert ask(page, "lante")["urls"] == ["http://tea.example/lanterns.html"]
    assert ask(page, "lante*")["urls"] == ["http://tea.example/lanterns.html"]
    assert ask(page, "lantenr")["correction"] == "lantern"
    assert ask(page, "東京都lantenr")["correction"] == "東京都 lantern"
    # Two changes of a word of seven letters: the consonants stay.
    assert ask(page, "lentirn")["correction"] == "lantern"
    assert ask(page, "kanters")["correction"] is None
    assert ask(page, "site:tea.example/chapters")["total"] == 30
    assert ask(page, "chapter", limit=10)["total"] == 30


def check_a_page_opened_from_a_file_names_its_requirements(session):
    context = session.browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    session.contexts.append(context)
    page = context.new_page()
    page.goto("file://" + session.setup["folder"] + "/search/index.html")
    expect(page.get_by_role("alert")).to_contain_text("python3 -m http.server")
    assert page.get_by_role("searchbox").count() == 0


def check_the_excerpt_is_from_the_matching_passage(session):
    page = session.page()
    first = ask(page, "boiling leaves")["first"]
    assert "boiling water over the leaves" in first["excerpt"], first["excerpt"]
    marked = [part["text"] for part in first["excerpt_parts"] if part["match"]]
    assert "boiling" in marked and "leaves" in marked, marked
    assert ask(page, "secretword")["first"]["excerpt"] == ""


def check_results_appear_while_typing(session):
    page = session.page()
    field = page.get_by_role("searchbox", name="Search")
    expect(field).to_be_focused()
    field.press_sequentially("lanter", delay=20)
    expect(results(page)).to_have_text(["Lanterns"])
    expect(page.get_by_role("status")).to_have_text("1 result for “lanter”")
    expect(page.locator(".hit mark").first).to_have_text("Lanterns")
    expect(page).to_have_url(session.origin + "/search/?q=lanter")
    page.reload()
    expect(results(page)).to_have_text(["Lanterns"])


def check_more_results(session):
    page = session.page("/search/?q=chapter")
    expect(results(page)).to_have_count(10)
    expect(page.get_by_role("status")).to_have_text("Results 1 to 10 of 30 for “chapter”")
    page.get_by_role("button", name="More results").click()
    expect(results(page)).to_have_count(20)
    page.get_by_role("button", name="More results").click()
    expect(results(page)).to_have_count(30)
    expect(page.get_by_role("button", name="More results")).to_be_hidden()


def check_everything_works_by_keyboard(session):
    page = session.page("/search/?q=tea")
    field = page.get_by_role("searchbox")
    expect(results(page).first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(results(page).nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(results(page).nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(results(page)).to_have_count(0)
    expect(field).to_have_value("")


def check_text_of_pages_is_never_markup(session):
    page = session.page("/search/?q=hostile")
    expect(results(page)).to_have_text(["<img src=x onerror=alert(1)> hostile"])
    expect(results(page)).to_have_attribute("href", re.compile(r"^http://tea\.example/hostile\.html\?q=<script>#:~:text=[\w%,-]+$"))
    expect(page.locator(".hit img, .hit script")).to_have_count(0)


def check_no_results_are_reported(session):
    page = session.page("/search/?q=nosuchword")
    expect(page.get_by_role("status")).to_have_text("No results for “nosuchword”")


def check_a_failed_download_is_reported_and_retried(session):
    page = session.page()
    page.route("**/words/*", lambda route: route.abort())
    page.get_by_role("searchbox").fill("tea")
    expect(page.get_by_role("alert")).to_contain_text("could not be loaded")
    page.unroute("**/words/*")
    page.get_by_role("searchbox").press("Enter")
    expect(results(page).first).to_be_visible()
    session.errors.clear()


def check_results_link_to_sections_and_passages(session):
    page = session.page()
    for case in session.setup["leads"]:
        first = ask(page, case["query"])["first"]
        for field in ("url", "leads_to", "passage_url", "section", "sections"):
            assert first.get(field) == case[field], f"{case['query']}: {field} is {first.get(field)}, not {case[field]}"
    page.goto(session.origin + "/search/?q=boiling leaves")
    expect(results(page).first).to_have_attribute("href", session.setup["leads"][0]["passage_url"])
    expect(page.locator(".sections a").first).to_have_text("Brewing it")


def check_synonyms_pins_and_removals_apply(session):
    page = session.page()
    assert ask(page, "cha")["urls"][0] == "http://tea.example/docs/green.html"
    pinned = ask(page, "Opening times?")
    assert pinned["urls"][0] == "http://tea.example/coffee.html", pinned
    assert pinned["first"]["pinned"] and pinned["total"] == 2, pinned
    assert ask(page, "gone page")["total"] == 0
    assert len(ask(page, "black", limit=1)["urls"]) == 1


def check_compounds_are_found_by_their_last_part(session):
    page = session.page()
    found = ask(page, "Versicherung")["urls"]
    assert found == [f"http://tea.example/{name}.html" for name in ("versicherung", "pflicht", "krank")], found
    assert ask(page, "Versicherungspflicht")["urls"][0] == "http://tea.example/pflicht.html"


def check_the_box_is_embedded_by_one_tag(session):
    page = session.page("/embedded.html")
    field = page.get_by_role("searchbox", name="Find it")
    page.locator("input[name=other]").focus()
    page.keyboard.press("/")
    expect(field).not_to_be_focused()
    page.get_by_role("heading").click()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    field.fill("chapter")
    expect(results(page)).to_have_count(5)
    expect(page).to_have_url(session.origin + "/embedded.html")
    page.keyboard.press("Escape")
    expect(results(page).first).to_be_hidden()
    expect(field).to_have_value("chapter")
    page.keyboard.press("ArrowDown")
    expect(results(page).first).to_be_focused()
    page.get_by_role("link", name="All 30 results").click()
    expect(page).to_have_url(session.origin + "/search/?q=chapter")
    expect(results(page)).to_have_count(10)


def check_the_box_has_the_theme_of_its_page(session):
    page = session.page("/embedded.html")
    field = page.get_by_role("searchbox")
    background = "(field) => getComputedStyle(field).backgroundColor"
    light = field.evaluate(background)
    page.evaluate("document.documentElement.style.colorScheme = 'dark'")
    assert field.evaluate(background) != light


def check_ctrl_k_opens_a_dialog_on_every_page(session):
    for path in ("/embedded.html", "/search/"):
        page = session.page(path)
        page.get_by_role("heading", level=1).click()
        page.keyboard.press("Control+k")
        dialog = page.get_by_role("dialog")
        field = dialog.get_by_role("searchbox")
        expect(field).to_be_focused()
        field.fill("lantern")
        expect(results(dialog)).to_have_text(["Lanterns"])
        page.keyboard.press("Enter")
        page.keyboard.press("ArrowDown")
        expect(results(dialog).first).to_be_focused()
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        page.keyboard.press("Control+k")
        field.fill("")
        expect(dialog.get_by_text("Recent searches", exact=True)).to_be_visible()
        dialog.get_by_role("button", name="lantern", exact=True).click()
        expect(results(dialog)).to_have_text(["Lanterns"])
        field.fill("chapter")
        dialog.get_by_role("link", name="All 30 results").click()
        expect(page).to_have_url(session.origin + "/search/?q=chapter")


def check_pages_fit_small_screens_in_both_themes(session):
    backgrounds = set()
    for scheme in ("light", "dark"):
        page = session.page(
            "/search/?q=tea", viewport={"width": 320, "height": 600}, color_scheme=scheme
        )
        expect(results(page).first).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 320, f"{wide} px wide"
        backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(backgrounds) == 2, backgrounds


def check_no_text_is_cut_off_on_a_phone(session):
    for width in (320, 390):
        for path in ("/search/?q=tea", "/search/?q=chapter", "/search/?q=nosuchword", "/embedded.html"):
            page = session.page(path, viewport={"width": width, "height": 640})
            if path == "/embedded.html":
                page.get_by_role("searchbox").fill("chapter")
            if "nosuchword" not in path:
                expect(results(page).first).to_be_visible()
            assert_nothing_is_clipped(page, path)


def check_pages_pass_axe(session):
    for scheme in ("light", "dark"):
        for path in ("/search/", "/search/?q=tea", "/search/?q=nosuchword", "/embedded.html"):
            page = session.page(path, color_scheme=scheme)
            if path == "/embedded.html":
                page.get_by_role("searchbox").fill("chapter")
            if path.endswith(("tea", "html")):
                expect(results(page).first).to_be_visible()
            for what in (path, f"{path} with the dialog"):
                if what != path:
                    page.keyboard.press("Control+k")
                    page.get_by_role("dialog").get_by_role("searchbox").fill("tea")
                    expect(results(page.get_by_role("dialog")).first).to_be_visible()
                found = axe.violations(page)
                assert not found, f"{what}, {scheme}: " + "\n".join(found)


def check_a_page_without_scripts_names_its_requirements(session):
    page = session.page(java_script_enabled=False)
    expect(page.get_by_text("needs JavaScript")).to_be_visible()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        setup = json.load(file)
    handler = functools.partial(QuietHandler, directory=setup["folder"])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": os.environ["CRAWL_CHROMIUM_LIBRARIES"],
        "FONTCONFIG_FILE": os.environ["CRAWL_CHROMIUM_FONTS"],
    }
    expect.set_options(timeout=TIMEOUT_MS)
    failed = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["CRAWL_CHROMIUM"], env=environment, timeout=TIMEOUT_MS * 3
        )
        for name, check in list(globals().items()):
            if not name.startswith("check_"):
                continue
            session = BrowserSession(browser, origin, setup)
            try:
                check(session)
                session.end()
            except Exception:  # run the other checks whatever happened
                traceback.print_exc()
                failed.append(name)
            print(f"{'FAILED' if name in failed else 'ok'}  {name}", file=sys.stderr)
        browser.close()
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
