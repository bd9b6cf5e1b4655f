"""The snippet on a page of another origin."""

from playwright.sync_api import expect

import axe
import reading
from clipped import nothing_is_clipped


def start(look, path, host="site", **options):
    page = look.page(**options)
    page.goto(look.told[host] + path)
    # Playwright looks into open shadow roots.
    return page, page.get_by_role("searchbox")


def panel_ground(page):
    return page.locator(".panel").evaluate("(node) => getComputedStyle(node).backgroundColor")


def check_results_show_on_another_site(look):
    page, field = start(look, "/embedded")
    expect(field).to_have_attribute("placeholder", "Search the site")
    field.press_sequentially("befor", delay=20)
    expect(page.get_by_role("status")).to_have_text("1 result for “befor”")
    region = page.get_by_role("region", name="Results")
    expect(region.locator("mark").first).to_be_visible()
    region.get_by_role("link", name="How rules are read").click()
    expect(page).to_have_url(look.told["site"] + "/rules")


def check_styles_of_neither_reach_the_other(look):
    page, field = start(look, "/embedded")
    field.fill("lantern")
    expect(page.locator(".hit").first).to_be_visible()
    style = "(node, name) => getComputedStyle(node)[name]"
    assert field.evaluate(style, "borderTopWidth") == "1px"
    assert page.locator(".hit .title").first.evaluate(style, "color") != "rgb(1, 2, 3)"
    own = page.locator("h3", has_text="Its own heading")
    assert own.evaluate(style, "color") == "rgb(1, 2, 3)"
    assert page.evaluate("document.adoptedStyleSheets.length") == 0


def check_keys_reach_everything(look):
    page, field = start(look, "/embedded")
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


def check_all_results_are_a_link_away(look):
    page, field = start(look, "/embedded")
    field.fill("lantern")
    page.get_by_role("link", name="All 30 results").click()
    expect(page.locator("#status")).to_have_text("Results 1 to 10 of 30 for “lantern”")
    assert page.url.startswith(look.told["search"])


def check_a_strict_policy_does_not_hinder_it(look):
    page, field = start(look, "/strict")
    field.fill("lantern")
    expect(page.locator(".hit")).to_have_count(3)
    assert page.locator(".panel").evaluate("(node) => getComputedStyle(node).position") == "absolute"


def check_it_is_as_light_or_dark_as_the_page(look):
    page, field = start(look, "/embedded", color_scheme="dark")
    field.fill("secret")
    expect(page.locator(".hit")).to_have_count(1)
    light = panel_ground(page)
    assert light == "rgb(255, 255, 255)", "a page that says nothing is light"
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    expect(page.locator(".panel")).to_have_css("background-color", "rgb(29, 31, 37)")
    found = page.evaluate(reading.CONTRAST, "#here > div")
    assert found["seen"] > 3 and not found["faults"], found
    page.evaluate("delete document.documentElement.dataset.theme")
    expect(page.locator(".panel")).to_have_css("background-color", light)
    found = page.evaluate(reading.CONTRAST, "#here > div")
    assert found["seen"] > 3 and not found["faults"], found
    page, field = start(look, "/dark")
    field.fill("secret")
    expect(page.locator(".panel")).to_have_css("background-color", "rgb(29, 31, 37)")


def check_a_site_that_was_not_named_reads_nothing(look):
    # The browser says on the console that it kept the answer back, and the snippet says what to do.
    page, field = start(look, "/embedded", host="other", watched=False)
    remedy = "start crawl serve with --allow-origin " + look.told["other"]
    with page.expect_console_message(lambda message: remedy in message.text):
        field.fill("secret")
    expect(page.get_by_role("alert")).to_contain_text(remedy)
    expect(page.locator(".hit")).to_have_count(0)


def check_a_server_that_is_down_is_not_taken_for_one_that_refuses(look):
    page, field = start(look, "/embedded", host="other", watched=False)
    page.route(look.told["search"] + "/**", lambda route: route.abort())
    field.fill("secret")
    expect(page.get_by_role("alert")).to_contain_text("Can't reach the search")


def check_a_dialog_opens_from_anywhere(look):
    for width in (320, 390, 1000):
        page = look.page(viewport={"width": width, "height": 700})
        for path in (look.told["site"] + "/embedded", look.told["search"] + "/crawl", look.told["search"] + "/"):
            page.goto(path)
            page.keyboard.press("Control+k")
            dialog = page.get_by_role("dialog")
            field = dialog.get_by_role("searchbox")
            expect(field).to_be_focused()
            field.press_sequentially("lantern")
            page.keyboard.press("ArrowDown")
            expect(dialog.locator(".hit .title a").first).to_be_focused()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            # The page behind it can't be used meanwhile, which axe does not know of.
            found = axe.violations(page, ["body > div:last-of-type", "dialog"])
            assert not found, "\n".join(found)
            page.keyboard.press("Escape")
            expect(dialog).to_be_hidden()
            page.keyboard.press("Control+k")
            page.keyboard.press("Control+k")
            expect(dialog).to_be_hidden()


def check_command_k_opens_the_dialog_on_a_mac(look):
    page = look.page()
    page.add_init_script("Object.defineProperty(navigator, 'platform', { get: () => 'MacIntel' })")
    for path in (look.told["site"] + "/embedded", look.told["search"] + "/"):
        page.goto(path)
        dialog = page.get_by_role("dialog")
        # There Ctrl-K deletes to the end of a line.
        page.keyboard.press("Control+k")
        assert dialog.count() == 0
        page.keyboard.press("Meta+k")
        expect(dialog.get_by_role("searchbox")).to_be_focused()
        page.keyboard.press("Meta+k")
        expect(dialog).to_be_hidden()


def check_no_text_is_cut_off_on_a_phone(look):
    for width in (320, 390):
        page = look.page(viewport={"width": width, "height": 640})
        for query in ("boat", "hostile", "lantern", "höflichkeit", "zeppelin", "w" * 200):
            page.goto(f"{look.told['search']}/?q={query}")
            nothing_is_clipped(page, f"the page of {query}")
            page.keyboard.press("Control+k")
            dialog = page.get_by_role("dialog")
            with page.expect_response("**/api/search?**"):
                dialog.get_by_role("searchbox").fill(query)
            expect(dialog.locator("p.status").first).to_be_visible()
            nothing_is_clipped(page, f"the dialog with {query}")
            page.goto(look.told["site"] + "/embedded")
            with page.expect_response("**/api/search?**"):
                page.get_by_role("searchbox").fill(query)
            expect(page.locator(".panel p.status").first).to_be_visible()
            nothing_is_clipped(page, f"the box with {query}")


def check_recent_searches_stay_in_the_browser_and_can_be_cleared(look):
    page = look.page()
    page.goto(look.told["site"] + "/embedded")
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("searchbox").fill("rules read")
    dialog.get_by_role("link", name="How rules are read").click()
    expect(page).to_have_url(look.told["site"] + "/rules")
    page.goto(look.told["site"] + "/embedded")
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


def check_a_result_leads_to_its_passage(look):
    page, field = start(look, "/embedded")
    field.fill("unreachable robots")
    link = page.locator(".hit .title a").first
    assert ":~:text=" in link.get_attribute("href")
    # The page that it leads to has the passage far below its top.
    link.click()
    expect(page.locator("#passage")).to_be_in_viewport()
    assert page.evaluate("scrollY") > 1000
