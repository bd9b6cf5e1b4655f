"""axe-core on every page, in both themes."""

from playwright.sync_api import expect

import axe

SCHEMES = ("light", "dark")
PATHS = ("/", "/?q=lantern", "/?q=unreachable+robots", "/?q=lantenr", "/?q=zeppelin", "/crawl")


def assert_no_violations(page, name):
    found = axe.violations(page)
    assert not found, f"{name}: " + "\n".join(found)


def check_served_pages(session):
    for scheme in SCHEMES:
        page = session.page(color_scheme=scheme)
        for path in PATHS:
            page.goto(session.setup["search"] + path)
            assert_no_violations(page, f"{path}, {scheme}")
        page.set_viewport_size({"width": 390, "height": 844})
        for path in PATHS:
            page.goto(session.setup["search"] + path)
            assert_no_violations(page, f"{path} on a phone, {scheme}")


def check_the_page_of_a_running_crawl(session):
    for scheme in SCHEMES:
        page = session.page(color_scheme=scheme)
        page.goto(session.setup["live"] + "/crawl")
        page.locator("#controls").wait_for()
        assert_no_violations(page, scheme)


def check_report_files(session):
    for scheme in SCHEMES:
        for width in (390, 1000):
            for path in (session.setup["report"], *session.setup["to_fix"], *session.setup["for_owners"]):
                page = session.page(color_scheme=scheme, viewport={"width": width, "height": 800})
                with open(path, encoding="utf-8") as file:
                    page.set_content(file.read())
                assert_no_violations(page, f"{path} collapsed, {scheme}, {width}")
                page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
                assert_no_violations(page, f"{path}, {scheme}, {width}")


def check_the_embedded_box(session):
    for scheme in SCHEMES:
        page = session.page(color_scheme=scheme)
        for path in ("/embedded", "/strict", "/dark"):
            page.goto(session.setup["site"] + path)
            field = page.get_by_role("searchbox")
            field.fill("lantern")
            expect(page.locator(".hit").first).to_be_visible()
            assert_no_violations(page, f"{path}, {scheme}")
            field.fill("zeppelin")
            expect(page.locator(".tips")).to_be_visible()
            assert_no_violations(page, f"{path} without results, {scheme}")
