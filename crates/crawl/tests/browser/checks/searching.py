"""The search page: typing, keys, links, history, what goes wrong."""

import json

from playwright.sync_api import expect


def start(look, path="/", **options):
    page = look.page(**options)
    page.goto(look.told["search"] + path)
    return page


def titles(page):
    return page.locator("#answer .title").all_inner_texts()


def check_results_come_as_one_types(look):
    page = start(look)
    before = page.evaluate("history.length")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    field.press_sequentially("befor", delay=20)
    expect(page.locator("#status")).to_have_text("1 result for “befor”")
    expect(page.locator("#answer .title a")).to_have_text("How rules are read")
    expect(page.locator("#answer mark").first).to_be_visible()
    expect(page).to_have_url(look.told["search"] + "/?q=befor")
    assert page.title() == "befor · Search " + look.told["site"].removeprefix("http://")
    assert page.evaluate("history.length") == before, "letters are no steps of the history"


def check_an_answer_that_was_overtaken_is_dropped(look):
    page = start(look)
    held = []

    def hold(route):
        if "q=lantern" in route.request.url:
            held.append(route)
        else:
            route.continue_()

    page.route("**/api/search?**", hold)
    field = page.get_by_role("searchbox")
    with page.expect_request("**/api/search?q=lantern&**"):
        field.fill("lantern")
    field.fill("secret")
    expect(page.locator("#answer .title")).to_have_text(["A secret garden"])
    late = {"query": "lantern", "total": 0, "results": []}
    for route in held:
        try:
            route.fulfill(status=200, content_type="application/json", body=json.dumps(late))
        except Exception:
            pass  # The page gave the request up: so much the better.
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    assert titles(page) == ["A secret garden"]
    expect(page.locator("#status")).to_have_text("1 result for “secret”")


def check_only_a_pause_asks(look):
    page = look.page()
    page.clock.install()
    page.goto(look.told["search"])
    # Time stands still but where it is told to go on.
    page.clock.pause_at(page.evaluate("Date.now()") + 60_000)
    asked = lambda: [url for url in look.requests if "/api/search" in url]
    page.get_by_role("searchbox").press_sequentially("chapter")
    assert asked() == []
    with page.expect_response("**/api/search?**"):
        page.clock.run_for(200)
    expect(page.locator("#status")).to_have_text("Results 1 to 10 of 30 for “chapter”")
    assert len(asked()) == 1, asked()


def check_a_click_leads_to_the_page(look):
    page = start(look)
    page.get_by_role("searchbox").fill("rules read")
    page.get_by_role("link", name="How rules are read").click()
    expect(page).to_have_url(look.told["site"] + "/rules")
    expect(page.get_by_role("heading")).to_have_text("Here it is")
    page.go_back()
    expect(page.locator("#answer .title").first).to_have_text("How rules are read")


def check_keys_reach_everything(look):
    page = start(look, "/?q=lantern")
    field = page.get_by_role("searchbox")
    links = page.locator("#answer .title a")
    # What was asked for stands in the field, and the keys work at once.
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    assert field.input_value() == "lantern", "the key that led here is not typed"
    links = page.locator("#answer .title a")
    page.keyboard.press("ArrowDown")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    for _ in range(20):
        page.keyboard.press("ArrowDown")
    expect(links.last).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    expect(page.locator("#answer .hit")).to_have_count(0)
    expect(page).to_have_url(look.told["search"] + "/")
    page.keyboard.type("rules read")
    expect(links).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(look.told["site"] + "/rules")


def check_enter_is_a_step_of_the_history(look):
    page = start(look)
    field = page.get_by_role("searchbox")
    field.fill("secret")
    field.press("Enter")
    expect(page.locator("#answer .title")).to_have_text(["A secret garden"])
    field.fill("hostile")
    field.press("Enter")
    expect(page.locator("#answer .title")).to_have_count(1)
    expect(page.locator("#status")).to_have_text("1 result for “hostile”")
    page.get_by_role("searchbox").fill("")
    expect(page.locator(".welcome")).to_be_visible()
    page.goto(look.told["search"] + "/?q=lantern")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#status")).to_contain_text("Results 11 to 20")
    page.go_back()
    expect(page.locator("#status")).to_contain_text("Results 1 to 10")


def check_pages_while_typing_go_on_with_the_same_question(look):
    page = start(look)
    page.get_by_role("searchbox").fill("lanter")
    expect(page.locator("#status")).to_have_text("Results 1 to 10 of 30 for “lanter”")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#status")).to_have_text("Results 11 to 20 of 30 for “lanter”")


def check_a_misspelt_word_is_taken_for_the_one_meant(look):
    page = start(look)
    field = page.get_by_role("searchbox")
    field.fill("lantenr")
    field.press("Enter")
    expect(page.locator(".meant")).to_contain_text("No results for “lantenr”")
    page.locator(".meant a").click()
    expect(field).to_have_value("lantern")
    expect(page.locator(".meant")).to_have_count(0)


def check_nothing_found_says_so(look):
    page = start(look)
    page.get_by_role("searchbox").fill("zeppelin")
    expect(page.locator("#status")).to_have_text("No results for “zeppelin”")
    expect(page.locator(".nothing")).to_contain_text("check the spelling")


def check_what_goes_wrong_is_said(look):
    # The console tells of requests that fail, and these are meant to.
    page = start(look, watched=False)
    field = page.get_by_role("searchbox")
    page.route("**/api/search?**", lambda route: route.abort())
    field.fill("secret")
    expect(page.get_by_role("alert")).to_contain_text("Can't reach")
    page.unroute("**/api/search?**")
    busy = json.dumps({"error": "too many requests", "hint": "try again in 2 s"})
    page.route(
        "**/api/search?**",
        lambda route: route.fulfill(status=429, content_type="application/json", body=busy),
    )
    field.fill("secrets")
    expect(page.get_by_role("alert")).to_have_text("Too many requests. Try again in 2 s.")
    page.unroute("**/api/search?**")
    field.fill("secret")
    expect(page.locator("#answer .title")).to_have_text(["A secret garden"])
    expect(page.get_by_role("alert")).to_have_count(0)


def check_what_pages_say_is_text(look):
    page = start(look)
    page.get_by_role("searchbox").fill("hostile")
    heading = page.locator("#answer .title")
    expect(heading).to_have_text("<script>alert('hostile')</script> & \"more\"")
    assert page.locator("#answer script, #answer img").count() == 0


def check_it_works_without_scripts(look):
    page = start(look, java_script_enabled=False)
    expect(page.locator("kbd")).to_be_hidden()
    page.get_by_role("searchbox").fill("lantern")
    page.get_by_role("button", name="Search").click()
    expect(page).to_have_url(look.told["search"] + "/?q=lantern")
    expect(page.locator("#answer .hit")).to_have_count(10)
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#status")).to_have_text("Results 11 to 20 of 30 for “lantern”")
    page.goto(look.told["search"] + "/?q=lantenr")
    page.locator(".meant a").click()
    expect(page).to_have_url(look.told["search"] + "/?q=lantern")


def check_scripts_and_server_draw_the_same(look):
    plain = look.page(java_script_enabled=False)
    page = start(look)
    field = page.get_by_role("searchbox")
    for query in ("boat", "unreachble robots", "höflichkeit", "hostile", "secret", "lantern", "lantenr", "zeppelin", 'a&b "c"'):
        plain.goto(look.told["search"])
        plain.get_by_role("searchbox").fill(query)
        plain.get_by_role("button", name="Search").click()
        field.fill(query)
        with page.expect_response("**/api/search?**"):
            field.press("Enter")
        expect(page.locator("#answer")).to_have_attribute("aria-busy", "false")
        expect(page.locator("#status")).to_have_text(plain.locator("#status").inner_text())
        drawn, served = (each.locator("#answer").inner_html() for each in (page, plain))
        assert drawn == served, f"{query}:\n{drawn}\n{served}"
    narrowed = "/?q=boat&folder=" + look.told["site"].removeprefix("http://").replace(":", "%3A") + "%2Fhandbook&language=en"
    plain.goto(look.told["search"] + narrowed)
    page.goto(look.told["search"] + narrowed)
    with page.expect_response("**/api/search?**"):
        page.get_by_role("searchbox").press("Enter")
    expect(page.locator("#answer")).to_have_attribute("aria-busy", "false")
    drawn, served = (each.locator("#answer").inner_html() for each in (page, plain))
    assert drawn == served and "chosen" in drawn, f"{drawn}\n{served}"


def check_results_are_narrowed(look):
    for script in (False, True):
        page = start(look, "/?q=boat", java_script_enabled=script)
        narrow = page.get_by_role("navigation", name="Narrow the results")
        expect(page.locator("#answer .title")).to_have_count(3)
        narrow.get_by_role("link", name="v1.9", exact=True).click()
        expect(page).to_have_url(look.told["search"] + "/?q=boat&version=v1.9")
        expect(page.locator("#answer .where")).to_have_count(2)
        assert all("v1.9" in where for where in page.locator("#answer .where").all_inner_texts())
        # Another search keeps to the version; it can be left where nothing is found, too.
        page.get_by_role("searchbox").fill("lantern")
        page.get_by_role("button", name="Search").click()
        expect(page.locator("#status")).to_have_text("No results for “lantern”")
        narrow.get_by_role("link", name="v1.9").click()
        expect(page.locator("#status")).to_have_text("Results 1 to 10 of 30 for “lantern”")
        expect(page).to_have_url(look.told["search"] + "/?q=lantern")
        page.get_by_role("link", name="Next").click()
        expect(page).to_have_url(look.told["search"] + "/?q=lantern&page=2")


def check_the_policy_keeps_scripts_out(look):
    page = start(look, watched=False)
    broken = []
    page.on("console", lambda message: broken.append(message.text))
    page.evaluate(
        """() => new Promise((done) => {
          addEventListener("securitypolicyviolation", done, { once: true });
          const image = document.createElement("img");
          image.src = "http://127.0.0.1:9/elsewhere.png";
          document.body.append(image);
        })"""
    )
    assert any("policy broken: img-src" in text for text in broken), broken
    look.requests.clear()
    refused = page.evaluate(
        """() => { try { document.body.innerHTML = "<p>"; return false; } catch { return true; } }"""
    )
    assert refused, "text is never read as HTML"
