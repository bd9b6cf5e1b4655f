"""The page of a crawl: its report, its live state while it runs, and commands."""

from playwright.sync_api import expect


def check_the_report_needs_no_script(session):
    page = session.page(java_script_enabled=False)
    page.goto(session.setup["search"] + "/crawl")
    expect(page.get_by_role("heading", name="What to fix")).to_be_visible()
    expect(page.get_by_role("table", name="Statuses")).to_contain_text("404")
    expect(page.locator("#live")).to_be_hidden()
    page.goto(session.setup["live"] + "/crawl")
    expect(page.locator("#live")).to_be_visible()
    expect(page.locator("#controls")).to_be_hidden()


PAGE_COUNT = """(first) => {
  const name = [...document.querySelectorAll("#report dt")].find((name) => name.textContent === "Pages");
  const pages = Number(name.nextElementSibling.textContent.replace(",", ""));
  return first === null ? pages : pages > first;
}"""


def check_a_running_crawl_is_shown_and_controlled(session):
    page = session.page()
    page.goto(session.setup["live"] + "/crawl")
    phase = page.locator("#phase")
    expect(phase).to_have_text("Crawling")
    # The report is updated while the crawl runs, and no number is shown twice.
    page.wait_for_function(PAGE_COUNT, arg=page.evaluate(PAGE_COUNT, None))
    names = page.locator("dt").all_inner_texts()
    assert len(names) == len(set(names)), names
    expect(page.locator("#waits")).not_to_be_empty()
    expect(page.locator("#latest li").first).to_be_visible()
    host = session.setup["crawled_host"]
    expect(page.locator("#hosts")).to_contain_text(host)
    message = page.locator("#command-result")
    refusals_are_shown(session)

    page.get_by_label("Token").fill(session.setup["token"])
    expect(page.get_by_role("button", name="Resume")).to_be_hidden()
    page.get_by_role("button", name="Pause").click()
    expect(phase).to_have_text("Paused")
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    expect(message).to_have_text("Paused: no new requests are sent.")

    page.get_by_label("URL to fetch").fill(session.setup["crawled"])
    page.keyboard.press("Enter")
    expect(message).to_have_text("Added " + session.setup["crawled"])
    expect(page.get_by_label("URL to fetch")).to_have_value("")

    page.get_by_label("Delay between requests").fill("0s")
    page.get_by_role("button", name="Set").click()
    expect(message).to_have_text("The delay is 0s for all hosts.")

    page.get_by_role("button", name=f"Park {host}", exact=True).click()
    unpark = page.get_by_role("button", name=f"Unpark {host}")
    expect(unpark).to_be_visible()
    unpark.click()
    expect(unpark).to_be_hidden()

    page.get_by_role("button", name="Resume").click()
    expect(message).to_have_text("Resumed.")
    expect(phase).to_have_text("No crawl is running")
    expect(page.locator("#live")).to_be_hidden()
    page.reload()
    expect(page.get_by_role("table", name="Requests")).to_contain_text("page")


def refusals_are_shown(session):
    """Uses a page of its own, because the console shows each refusal too."""
    page = session.page(watched=False)
    page.goto(session.setup["live"] + "/crawl")
    message = page.locator("#command-result")
    page.get_by_role("button", name="Pause").click()
    expect(message).to_contain_text("controlling the crawl needs a token")
    page.get_by_label("Token").fill("a wrong one")
    with page.expect_console_message(lambda logged: "--token-file" in logged.text):
        page.get_by_role("button", name="Pause").click()
    expect(message).to_contain_text("the token is wrong")
    expect(message).to_contain_text("the token is in the file of --token-file")
    page.get_by_label("Token").fill(session.setup["token"])
    page.get_by_label("URL to fetch").fill("nonsense")
    page.keyboard.press("Enter")
    expect(message).to_contain_text("unusable URL")
    expect(page.locator("#phase")).to_have_text("Crawling")
