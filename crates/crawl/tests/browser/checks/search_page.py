"""The search page: typing, keyboard, links, history, errors."""

import json

from playwright.sync_api import expect


def start(session, path="/", **options):
    page = session.page(**options)
    page.goto(session.setup["search"] + path)
    return page


def titles(page):
    return page.locator("#answer .title").all_inner_texts()


def check_results_appear_while_typing(session):
    page = start(session)
    before = page.evaluate("history.length")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    field.press_sequentially("befor", delay=20)
    expect(page.locator("#status")).to_have_text("1 result for “befor”")
    expect(page.locator("#answer .title a")).to_have_text("How rules are read")
    expect(page.locator("#answer mark").first).to_be_visible()
    expect(page).to_have_url(session.setup["search"] + "/?q=befor")
    assert page.title() == "befor · Search " + session.setup["site"].removeprefix("http://")
    assert page.evaluate("history.length") == before, "typing adds no history entries"


def check_outdated_answers_are_dropped(session):
    page = start(session)
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
    outdated = {"query": "lantern", "total": 0, "results": []}
    for route in held:
        try:
            route.fulfill(status=200, content_type="application/json", body=json.dumps(outdated))
        except Exception:
            pass  # The page has already aborted the request.
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    assert titles(page) == ["A secret garden"]
    expect(page.locator("#status")).to_have_text("1 result for “secret”")


def check_a_request_is_sent_only_after_a_pause_in_typing(session):
    page = session.page()
    page.clock.install()
    page.goto(session.setup["search"])
    # The clock advances only when the check advances it.
    page.clock.pause_at(page.evaluate("Date.now()") + 60_000)
    sent = lambda: [url for url in session.requests if "/api/search" in url]
    page.get_by_role("searchbox").press_sequentially("chapter")
    assert sent() == []
    with page.expect_response("**/api/search?**"):
        page.clock.run_for(200)
    expect(page.locator("#status")).to_have_text("Results 1 to 10 of 30 for “chapter”")
    assert len(sent()) == 1, sent()


def check_a_click_opens_the_page(session):
    page = start(session)
    page.get_by_role("searchbox").fill("rules read")
    page.get_by_role("link", name="How rules are read").click()
    expect(page).to_have_url(session.setup["site"] + "/rules")
    expect(page.get_by_role("heading")).to_have_text("Here it is")
    page.go_back()
    expect(page.locator("#answer .title").first).to_have_text("How rules are read")


def check_everything_works_by_keyboard(session):
    page = start(session, "/?q=lantern")
    field = page.get_by_role("searchbox")
    links = page.locator("#answer .title a")
    # The field contains the query, and the keys work at once.
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    assert field.input_value() == "lantern", "the key that focuses the field is not typed into it"
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
    expect(page).to_have_url(session.setup["search"] + "/")
    page.keyboard.type("rules read")
    expect(links).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(session.setup["site"] + "/rules")


def check_enter_adds_a_history_entry(session):
    page = start(session)
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
    page.goto(session.setup["search"] + "/?q=lantern")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#status")).to_contain_text("Results 11 to 20")
    page.go_back()
    expect(page.locator("#status")).to_contain_text("Results 1 to 10")


def check_the_next_page_keeps_an_unfinished_query(session):
    page = start(session)
    page.get_by_role("searchbox").fill("lanter")
    expect(page.locator("#status")).to_have_text("Results 1 to 10 of 30 for “lanter”")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#status")).to_have_text("Results 11 to 20 of 30 for “lanter”")


def check_a_correction_is_suggested(session):
    page = start(session)
    field = page.get_by_role("searchbox")
    field.fill("lantenr")
    field.press("Enter")
    expect(page.locator(".meant")).to_contain_text("No results for “lantenr”")
    page.locator(".meant a").click()
    expect(field).to_have_value("lantern")
    expect(page.locator(".meant")).to_have_count(0)


def check_no_results_are_reported(session):
    page = start(session)
    page.get_by_role("searchbox").fill("zeppelin")
    expect(page.locator("#status")).to_have_text("No results for “zeppelin”")
    expect(page.locator(".nothing")).to_contain_text("check the spelling")


def check_errors_are_shown(session):
    # The console shows failed requests, which this check causes.
    page = start(session, watched=False)
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


def check_text_of_pages_is_never_markup(session):
    page = start(session)
    page.get_by_role("searchbox").fill("hostile")
    heading = page.locator("#answer .title")
    expect(heading).to_have_text("<script>alert('hostile')</script> & \"more\"")
    assert page.locator("#answer script, #answer img").count() == 0


def check_search_works_without_scripts(session):
    page = start(session, java_script_enabled=False)
    expect(page.locator("kbd")).to_be_hidden()
    page.get_by_role("searchbox").fill("lantern")
    page.get_by_role("button", name="Search").click()
    expect(page).to_have_url(session.setup["search"] + "/?q=lantern")
    expect(page.locator("#answer .hit")).to_have_count(10)
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#status")).to_have_text("Results 11 to 20 of 30 for “lantern”")
    page.goto(session.setup["search"] + "/?q=lantenr")
    page.locator(".meant a").click()
    expect(page).to_have_url(session.setup["search"] + "/?q=lantern")


def check_script_and_server_render_the_same(session):
    plain = session.page(java_script_enabled=False)
    page = start(session)
    field = page.get_by_role("searchbox")
    for query in ("boat", "unreachble robots", "höflichkeit", "hostile", "secret", "lantern", "lantenr", "zeppelin", 'a&b "c"'):
        plain.goto(session.setup["search"])
        plain.get_by_role("searchbox").fill(query)
        plain.get_by_role("button", name="Search").click()
        field.fill(query)
        with page.expect_response("**/api/search?**"):
            field.press("Enter")
        expect(page.locator("#answer")).to_have_attribute("aria-busy", "false")
        expect(page.locator("#status")).to_have_text(plain.locator("#status").inner_text())
        rendered, served = (each.locator("#answer").inner_html() for each in (page, plain))
        assert rendered == served, f"{query}:\n{rendered}\n{served}"
    filtered = "/?q=boat&folder=" + session.setup["site"].removeprefix("http://").replace(":", "%3A") + "%2Fhandbook&language=en"
    plain.goto(session.setup["search"] + filtered)
    page.goto(session.setup["search"] + filtered)
    with page.expect_response("**/api/search?**"):
        page.get_by_role("searchbox").press("Enter")
    expect(page.locator("#answer")).to_have_attribute("aria-busy", "false")
    rendered, served = (each.locator("#answer").inner_html() for each in (page, plain))
    assert rendered == served and "chosen" in rendered, f"{rendered}\n{served}"


def check_results_can_be_filtered(session):
    for script in (False, True):
        page = start(session, "/?q=boat", java_script_enabled=script)
        filters = page.get_by_role("navigation", name="Narrow the results")
        expect(page.locator("#answer .title")).to_have_count(3)
        filters.get_by_role("link", name="v1.9", exact=True).click()
        expect(page).to_have_url(session.setup["search"] + "/?q=boat&version=v1.9")
        expect(page.locator("#answer .where")).to_have_count(2)
        assert all("v1.9" in where for where in page.locator("#answer .where").all_inner_texts())
        # Another query keeps the filter, which can be removed even if there are no results.
        page.get_by_role("searchbox").fill("lantern")
        page.get_by_role("button", name="Search").click()
        expect(page.locator("#status")).to_have_text("No results for “lantern”")
        filters.get_by_role("link", name="v1.9").click()
        expect(page.locator("#status")).to_have_text("Results 1 to 10 of 30 for “lantern”")
        expect(page).to_have_url(session.setup["search"] + "/?q=lantern")
        page.get_by_role("link", name="Next").click()
        expect(page).to_have_url(session.setup["search"] + "/?q=lantern&page=2")


def check_the_content_security_policy_is_enforced(session):
    page = start(session, watched=False)
    messages = []
    page.on("console", lambda message: messages.append(message.text))
    page.evaluate(
        """() => new Promise((done) => {
          addEventListener("securitypolicyviolation", done, { once: true });
          const image = document.createElement("img");
          image.src = "http://127.0.0.1:9/elsewhere.png";
          document.body.append(image);
        })"""
    )
    assert any("policy violated: img-src" in text for text in messages), messages
    session.requests.clear()
    refused = page.evaluate(
        """() => { try { document.body.innerHTML = "<p>"; return false; } catch { return true; } }"""
    )
    assert refused, "text is never parsed as HTML"
