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
from clipped import nothing_is_clipped

# The maximum time of any wait, which ends as soon as its condition holds.
PATIENCE_MS = 60_000

LISTEN = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy broken: ${event.violatedDirective} ${event.blockedURI}`));
"""

ASK = """async ([query, options]) => {
  const search = await CrawlSearch.open("/search/");
  const answer = await search.search(query, { limit: 50, ...options });
  return { urls: answer.results.map((result) => result.url), total: answer.total,
    meant: answer.did_you_mean, first: answer.results[0] };
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Look:
    """A browser context, the server's address, and the test's expectations."""

    def __init__(self, browser, origin, told):
        self.browser, self.origin, self.told = browser, origin, told
        self.contexts, self.faults, self.requests = [], [], []

    def page(self, path="/search/", **options):
        options.setdefault("viewport", {"width": 1000, "height": 800})
        context = self.browser.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        self.contexts.append(context)
        page = context.new_page()
        page.add_init_script(LISTEN)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.hear(message.type, message.text))
        page.on("pageerror", lambda error: self.hear("error", str(error)))
        page.goto(self.origin + path)
        return page

    def hear(self, kind, text):
        if kind in ("error", "warning"):
            self.faults.append(f"{kind}: {text}")

    def end(self):
        for context in self.contexts:
            context.close()
        strange = [url for url in self.requests if not url.startswith(self.origin)]
        assert not strange, f"asked elsewhere: {strange}"
        assert not self.faults, "; ".join(self.faults)


def ask(page, query, **options):
    return page.evaluate(ASK, [query, options])


def results(page):
    return page.locator(".hit .title a")


def check_words_are_cut_as_in_the_index(look):
    page = look.page()
    cut = "(text) => CrawlSearch.words(text).map((word) => [word.text, word.position, word.kind])"
    for case in look.told["words"]:
        found = page.evaluate(cut, case["text"])
        assert found == case["words"], f"{case['text']!r}: {found} instead of {case['words']}"


def check_queries_find_what_the_index_finds(look):
    page = look.page()
    for case in look.told["answers"]:
        found = ask(page, case["query"])["urls"]
        # After the pages with all words come pages with some of them, which the index omits. The
        # scores differ too, so adjacent results may be swapped.
        best = found[: len(case["urls"])]
        assert set(best) == set(case["urls"]), f"{case['query']}: {found}, not {case['urls']}"
        assert bool(found) == bool(case["urls"]), f"{case['query']}: {found}"
        assert not found or found[0] in case["urls"][:2], f"{case['query']}: {found}"


def check_beginnings_and_what_is_meant(look):
    page = look.page()
    assert ask(page, "lante")["urls"] == ["http://tea.example/lanterns.html"]
    assert ask(page, "lante*")["urls"] == ["http://tea.example/lanterns.html"]
    assert ask(page, "lantenr")["meant"] == "lantern"
    assert ask(page, "東京都lantenr")["meant"] == "東京都 lantern"
    # Two changes of a word of seven letters: the consonants stay.
    assert ask(page, "lentirn")["meant"] == "lantern"
    assert ask(page, "kanters")["meant"] is None
    assert ask(page, "site:tea.example/chapters")["total"] == 30
    assert ask(page, "chapter", limit=10)["total"] == 30


def check_a_page_opened_from_a_file_says_what_it_needs(look):
    context = look.browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    look.contexts.append(context)
    page = context.new_page()
    page.goto("file://" + look.told["folder"] + "/search/index.html")
    expect(page.get_by_role("alert")).to_contain_text("python3 -m http.server")
    assert page.get_by_role("searchbox").count() == 0


def check_the_excerpt_is_of_the_piece_that_fits(look):
    page = look.page()
    first = ask(page, "boiling leaves")["first"]
    assert "boiling water over the leaves" in first["excerpt"], first["excerpt"]
    marked = [part["text"] for part in first["excerpt_parts"] if part["match"]]
    assert "boiling" in marked and "leaves" in marked, marked
    assert ask(page, "secretword")["first"]["excerpt"] == ""


def check_results_come_as_one_types(look):
    page = look.page()
    field = page.get_by_role("searchbox", name="Search")
    expect(field).to_be_focused()
    field.press_sequentially("lanter", delay=20)
    expect(results(page)).to_have_text(["Lanterns"])
    expect(page.get_by_role("status")).to_have_text("1 result for “lanter”")
    expect(page.locator(".hit mark").first).to_have_text("Lanterns")
    expect(page).to_have_url(look.origin + "/search/?q=lanter")
    page.reload()
    expect(results(page)).to_have_text(["Lanterns"])


def check_more_results(look):
    page = look.page("/search/?q=chapter")
    expect(results(page)).to_have_count(10)
    expect(page.get_by_role("status")).to_have_text("Results 1 to 10 of 30 for “chapter”")
    page.get_by_role("button", name="More results").click()
    expect(results(page)).to_have_count(20)
    page.get_by_role("button", name="More results").click()
    expect(results(page)).to_have_count(30)
    expect(page.get_by_role("button", name="More results")).to_be_hidden()


def check_keys_reach_everything(look):
    page = look.page("/search/?q=tea")
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


def check_what_pages_say_is_only_text(look):
    page = look.page("/search/?q=hostile")
    expect(results(page)).to_have_text(["<img src=x onerror=alert(1)> hostile"])
    expect(results(page)).to_have_attribute("href", re.compile(r"^http://tea\.example/hostile\.html\?q=<script>#:~:text=[\w%,-]+$"))
    expect(page.locator(".hit img, .hit script")).to_have_count(0)


def check_nothing_found_is_said(look):
    page = look.page("/search/?q=nosuchword")
    expect(page.get_by_role("status")).to_have_text("No results for “nosuchword”")


def check_what_can_not_be_loaded_is_said_and_tried_again(look):
    page = look.page()
    page.route("**/words/*", lambda route: route.abort())
    page.get_by_role("searchbox").fill("tea")
    expect(page.get_by_role("alert")).to_contain_text("could not be loaded")
    page.unroute("**/words/*")
    page.get_by_role("searchbox").press("Enter")
    expect(results(page).first).to_be_visible()
    look.faults.clear()


def check_results_lead_to_their_sections_and_passages(look):
    page = look.page()
    for case in look.told["leads"]:
        first = ask(page, case["query"])["first"]
        for field in ("url", "leads_to", "passage_url", "section", "sections"):
            assert first.get(field) == case[field], f"{case['query']}: {field} is {first.get(field)}, not {case[field]}"
    page.goto(look.origin + "/search/?q=boiling leaves")
    expect(results(page).first).to_have_attribute("href", look.told["leads"][0]["passage_url"])
    expect(page.locator(".sections a").first).to_have_text("Brewing it")


def check_the_owners_rules_hold(look):
    page = look.page()
    assert ask(page, "cha")["urls"][0] == "http://tea.example/docs/green.html"
    pinned = ask(page, "Opening times?")
    assert pinned["urls"][0] == "http://tea.example/coffee.html", pinned
    assert pinned["first"]["pinned"] and pinned["total"] == 2, pinned
    assert ask(page, "gone page")["total"] == 0
    assert len(ask(page, "black", limit=1)["urls"]) == 1


def check_compounds_are_found_by_their_end(look):
    page = look.page()
    found = ask(page, "Versicherung")["urls"]
    assert found == [f"http://tea.example/{name}.html" for name in ("versicherung", "pflicht", "krank")], found
    assert ask(page, "Versicherungspflicht")["urls"][0] == "http://tea.example/pflicht.html"


def check_embedded_by_one_tag(look):
    page = look.page("/embedded.html")
    field = page.get_by_role("searchbox", name="Find it")
    page.locator("input[name=other]").focus()
    page.keyboard.press("/")
    expect(field).not_to_be_focused()
    page.get_by_role("heading").click()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    field.fill("chapter")
    expect(results(page)).to_have_count(5)
    expect(page).to_have_url(look.origin + "/embedded.html")
    page.keyboard.press("Escape")
    expect(results(page).first).to_be_hidden()
    expect(field).to_have_value("chapter")
    page.keyboard.press("ArrowDown")
    expect(results(page).first).to_be_focused()
    page.get_by_role("link", name="All 30 results").click()
    expect(page).to_have_url(look.origin + "/search/?q=chapter")
    expect(results(page)).to_have_count(10)


def check_the_box_is_as_dark_as_its_page(look):
    page = look.page("/embedded.html")
    field = page.get_by_role("searchbox")
    paper = "(field) => getComputedStyle(field).backgroundColor"
    light = field.evaluate(paper)
    page.evaluate("document.documentElement.style.colorScheme = 'dark'")
    assert field.evaluate(paper) != light


def check_a_dialog_opens_from_anywhere(look):
    for path in ("/embedded.html", "/search/"):
        page = look.page(path)
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
        expect(page).to_have_url(look.origin + "/search/?q=chapter")


def check_small_screens_and_both_schemes(look):
    papers = set()
    for scheme in ("light", "dark"):
        page = look.page(
            "/search/?q=tea", viewport={"width": 320, "height": 600}, color_scheme=scheme
        )
        expect(results(page).first).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 320, f"{wide} wide"
        papers.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(papers) == 2, papers


def check_no_text_is_cut_off_on_a_phone(look):
    for width in (320, 390):
        for path in ("/search/?q=tea", "/search/?q=chapter", "/search/?q=nosuchword", "/embedded.html"):
            page = look.page(path, viewport={"width": width, "height": 640})
            if path == "/embedded.html":
                page.get_by_role("searchbox").fill("chapter")
            if "nosuchword" not in path:
                expect(results(page).first).to_be_visible()
            nothing_is_clipped(page, path)


def check_rules_of_accessibility(look):
    for scheme in ("light", "dark"):
        for path in ("/search/", "/search/?q=tea", "/search/?q=nosuchword", "/embedded.html"):
            page = look.page(path, color_scheme=scheme)
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


def check_without_javascript_it_is_said(look):
    page = look.page(java_script_enabled=False)
    expect(page.get_by_text("needs JavaScript")).to_be_visible()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        told = json.load(file)
    handler = functools.partial(Quiet, directory=told["folder"])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": os.environ["CRAWL_CHROMIUM_LIBRARIES"],
        "FONTCONFIG_FILE": os.environ["CRAWL_CHROMIUM_FONTS"],
    }
    expect.set_options(timeout=PATIENCE_MS)
    failed = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["CRAWL_CHROMIUM"], env=environment, timeout=PATIENCE_MS * 3
        )
        for name, check in list(globals().items()):
            if not name.startswith("check_"):
                continue
            look = Look(browser, origin, told)
            try:
                check(look)
                look.end()
            except Exception:  # run the other checks whatever happened
                traceback.print_exc()
                failed.append(name)
            print(f"{'FAILED' if name in failed else 'ok'}  {name}", file=sys.stderr)
        browser.close()
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
