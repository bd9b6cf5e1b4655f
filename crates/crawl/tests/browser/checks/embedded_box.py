"""The search box that a page of another origin embeds."""

from playwright.sync_api import expect

import accessibility
import axe
from clipping import assert_nothing_is_clipped


def start(session, path, host="site", **options):
    page = session.page(**options)
    page.goto(session.setup[host] + path)
    # Playwright also finds elements in open shadow roots.
    return page, page.get_by_role("searchbox")


def panel_background(page):
    return page.locator(".panel").evaluate("(node) => getComputedStyle(node).backgroundColor")


def check_results_appear_on_another_site(session):
    page, field = start(session, "/embedded")
    expect(field).to_have_attribute("placeholder", "Search the site")
    field.press_sequentially("befor", delay=20)
    expect(page.get_by_role("status")).to_have_text("1 result for “befor”")
    region = page.get_by_role("region", name="Results")
    expect(region.locator("mark").first).to_be_visible()
    region.get_by_role("link", name="How rules are read").click()
    expect(page).to_have_url(session.setup["site"] + "/rules")


def check_styles_of_box_and_page_are_isolated(session):
    page, field = start(session, "/embedded")
    field.fill("lantern")
    expect(page.locator(".hit").first).to_be_visible()
    style = "(node, name) => getComputedStyle(node)[name]"
    assert field.evaluate(style, "borderTopWidth") == "1px"
    assert page.locator(".hit .title").first.evaluate(style, "color") != "rgb(1, 2, 3)"
    own = page.locator("h3", has_text="Its own heading")
    assert own.evaluate(style, "color") == "rgb(1, 2, 3)"
    assert page.evaluate("document.adoptedStyleSheets.length") == 0


def check_everything_works_by_keyboard(session):
    page, field = start(session, "/embedded")
    page.locator("h1").click()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    page.keyboard.type("lantern")
    links = page.locator(".hit .title a")
    expect(links).to_have_count(6)
    page.keyboard.press("ArrowDown")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_be_focused()
    expect(page.locator(".panel")).to_be_hidden()
    expect(field).to_have_value("lantern")
    page.keyboard.press("ArrowDown")
    expect(links.nth(0)).to_be_focused()
    page.locator("h1").click()
    expect(page.locator(".panel")).to_be_hidden()
    field.focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(field).to_have_value("")


def check_a_link_leads_to_all_results(session):
    page, field = start(session, "/embedded")
    field.fill("lantern")
    page.get_by_role("link", name="All 30 results").click()
    expect(page.locator("#status")).to_have_text("Results 1 to 10 of 30 for “lantern”")
    assert page.url.startswith(session.setup["search"])


def check_the_box_works_with_a_strict_policy(session):
    page, field = start(session, "/strict")
    field.fill("lantern")
    expect(page.locator(".hit")).to_have_count(3)
    assert page.locator(".panel").evaluate("(node) => getComputedStyle(node).position") == "absolute"


def check_the_box_has_the_theme_of_the_page(session):
    page, field = start(session, "/embedded", color_scheme="dark")
    field.fill("secret")
    expect(page.locator(".hit")).to_have_count(1)
    light = panel_background(page)
    assert light == "rgb(255, 255, 255)", "a page without a theme is light"
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    expect(page.locator(".panel")).to_have_css("background-color", "rgb(29, 31, 37)")
    found = page.evaluate(accessibility.CONTRAST, "#here > div")
    assert found["seen"] > 3 and not found["faults"], found
    page.evaluate("delete document.documentElement.dataset.theme")
    expect(page.locator(".panel")).to_have_css("background-color", light)
    found = page.evaluate(accessibility.CONTRAST, "#here > div")
    assert found["seen"] > 3 and not found["faults"], found
    page, field = start(session, "/dark")
    field.fill("secret")
    expect(page.locator(".panel")).to_have_css("background-color", "rgb(29, 31, 37)")


def check_other_origins_get_no_results(session):
    # The console shows that the browser withheld the answer, and the box shows the remedy.
    page, field = start(session, "/embedded", host="other", watched=False)
    remedy = "start crawl serve with --allow-origin " + session.setup["other"]
    with page.expect_console_message(lambda message: remedy in message.text):
        field.fill("secret")
    expect(page.get_by_role("alert")).to_contain_text(remedy)
    expect(page.locator(".hit")).to_have_count(0)


def check_an_unreachable_server_is_reported(session):
    page, field = start(session, "/embedded", host="other", watched=False)
    page.route(session.setup["search"] + "/**", lambda route: route.abort())
    field.fill("secret")
    expect(page.get_by_role("alert")).to_contain_text("Can't reach the search")


def check_ctrl_k_opens_a_dialog_on_every_page(session):
    for width in (320, 390, 1000):
        page = session.page(viewport={"width": width, "height": 700})
        for path in (session.setup["site"] + "/embedded", session.setup["search"] + "/crawl", session.setup["search"] + "/"):
            page.goto(path)
            page.keyboard.press("Control+k")
            dialog = page.get_by_role("dialog")
            field = dialog.get_by_role("searchbox")
            expect(field).to_be_focused()
            field.press_sequentially("lantern")
            page.keyboard.press("ArrowDown")
            expect(dialog.locator(".hit .title a").first).to_be_focused()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            # Check only the dialog: axe doesn't know that the page behind it is inert.
            found = axe.violations(page, ["body > div:last-of-type", "dialog"])
            assert not found, "\n".join(found)
            page.keyboard.press("Escape")
            expect(dialog).to_be_hidden()
            page.keyboard.press("Control+k")
            page.keyboard.press("Control+k")
            expect(dialog).to_be_hidden()


def check_command_k_opens_the_dialog_on_a_mac(session):
    page = session.page()
    page.add_init_script("Object.defineProperty(navigator, 'platform', { get: () => 'MacIntel' })")
    for path in (session.setup["site"] + "/embedded", session.setup["search"] + "/"):
        page.goto(path)
        dialog = page.get_by_role("dialog")
        # On a Mac, Ctrl-K deletes to the end of the line.
        page.keyboard.press("Control+k")
        assert dialog.count() == 0
        page.keyboard.press("Meta+k")
        expect(dialog.get_by_role("searchbox")).to_be_focused()
        page.keyboard.press("Meta+k")
        expect(dialog).to_be_hidden()


def check_no_text_is_cut_off_on_a_phone(session):
    for width in (320, 390):
        page = session.page(viewport={"width": width, "height": 640})
        for query in ("boat", "hostile", "lantern", "höflichkeit", "zeppelin", "w" * 200):
            page.goto(f"{session.setup['search']}/?q={query}")
            assert_nothing_is_clipped(page, f"the page of {query}")
            page.keyboard.press("Control+k")
            dialog = page.get_by_role("dialog")
            with page.expect_response("**/api/search?**"):
                dialog.get_by_role("searchbox").fill(query)
            expect(dialog.locator("p.status").first).to_be_visible()
            assert_nothing_is_clipped(page, f"the dialog with {query}")
            page.goto(session.setup["site"] + "/embedded")
            with page.expect_response("**/api/search?**"):
                page.get_by_role("searchbox").fill(query)
            expect(page.locator(".panel p.status").first).to_be_visible()
            assert_nothing_is_clipped(page, f"the box with {query}")


def check_recent_searches_stay_in_the_browser_and_can_be_cleared(session):
    page = session.page()
    page.goto(session.setup["site"] + "/embedded")
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("searchbox").fill("rules read")
    dialog.get_by_role("link", name="How rules are read").click()
    expect(page).to_have_url(session.setup["site"] + "/rules")
    page.goto(session.setup["site"] + "/embedded")
    page.keyboard.press("Control+k")
    page.keyboard.press("ArrowDown")
    again = dialog.get_by_role("button", name="rules read")
    expect(again).to_be_focused()
    again.press("Enter")
    expect(dialog.locator(".hit")).to_have_count(1)
    dialog.get_by_role("searchbox").fill("")
    dialog.get_by_role("button", name="Clear recent searches").click()
    expect(again).to_have_count(0)
    assert page.evaluate("Object.keys(localStorage)") == []


def check_a_result_opens_at_its_passage(session):
    page, field = start(session, "/embedded")
    field.fill("unreachable robots")
    link = page.locator(".hit .title a").first
    assert ":~:text=" in link.get_attribute("href")
    # The passage is far below the top of its page.
    link.click()
    expect(page.locator("#passage")).to_be_in_viewport()
    assert page.evaluate("scrollY") > 1000
