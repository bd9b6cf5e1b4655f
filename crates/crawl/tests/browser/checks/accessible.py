"""axe-core on every page, in both themes."""

from playwright.sync_api import expect

import axe

SCHEMES = ("light", "dark")
PATHS = ("/", "/?q=lantern", "/?q=unreachable+robots", "/?q=lantenr", "/?q=zeppelin", "/crawl")


def holds(page, name):
    found = axe.violations(page)
    assert not found, f"{name}: " + "\n".join(found)


def check_the_server_s_pages(look):
    for scheme in SCHEMES:
        page = look.page(color_scheme=scheme)
        for path in PATHS:
            page.goto(look.told["search"] + path)
            holds(page, f"{path}, {scheme}")
        page.set_viewport_size({"width": 390, "height": 844})
        for path in PATHS:
            page.goto(look.told["search"] + path)
            holds(page, f"{path} on a phone, {scheme}")


def check_the_page_of_a_crawl_that_runs(look):
    for scheme in SCHEMES:
        page = look.page(color_scheme=scheme)
        page.goto(look.told["live"] + "/crawl")
        page.locator("#controls").wait_for()
        holds(page, scheme)


def check_the_pages_on_disk(look):
    for scheme in SCHEMES:
        for width in (390, 1000):
            for path in (look.told["report"], *look.told["to_fix"], *look.told["for_owners"]):
                page = look.page(color_scheme=scheme, viewport={"width": width, "height": 800})
                with open(path, encoding="utf-8") as file:
                    page.set_content(file.read())
                holds(page, f"{path} folded, {scheme}, {width}")
                page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
                holds(page, f"{path}, {scheme}, {width}")


def check_the_snippet(look):
    for scheme in SCHEMES:
        page = look.page(color_scheme=scheme)
        for path in ("/embedded", "/strict", "/dark"):
            page.goto(look.told["site"] + path)
            field = page.get_by_role("searchbox")
            field.fill("lantern")
            expect(page.locator(".hit").first).to_be_visible()
            holds(page, f"{path}, {scheme}")
            field.fill("zeppelin")
            expect(page.locator(".tips")).to_be_visible()
            holds(page, f"{path} without results, {scheme}")
