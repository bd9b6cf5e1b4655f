"""The crawl's page: its report, the crawl that runs, commands."""

from playwright.sync_api import expect


def check_the_report_needs_no_script(look):
    page = look.page(java_script_enabled=False)
    page.goto(look.told["search"] + "/crawl")
    expect(page.get_by_role("heading", name="What to fix")).to_be_visible()
    expect(page.get_by_role("table", name="Statuses")).to_contain_text("404")
    expect(page.locator("#live")).to_be_hidden()
    page.goto(look.told["live"] + "/crawl")
    expect(page.locator("#live")).to_be_visible()
    expect(page.locator("#controls")).to_be_hidden()


PAGES = """(first) => {
  const name = [...document.querySelectorAll("#report dt")].find((name) => name.textContent === "Pages");
  const pages = Number(name.nextElementSibling.textContent.replace(",", ""));
  return first === null ? pages : pages > first;
}"""


def check_a_crawl_is_followed_and_controlled(look):
    page = look.page()
    page.goto(look.told["live"] + "/crawl")
    phase = page.locator("#phase")
    expect(phase).to_have_text("Crawling")
    # The report is renewed while the crawl runs, and each number is shown once.
    page.wait_for_function(PAGES, arg=page.evaluate(PAGES, None))
    names = page.locator("dt").all_inner_texts()
    assert len(names) == len(set(names)), names
    expect(page.locator("#waits")).not_to_be_empty()
    expect(page.locator("#latest li").first).to_be_visible()
    host = look.told["crawled_host"]
    expect(page.locator("#hosts")).to_contain_text(host)
    told = page.locator("#told")
    what_is_refused_is_said(look)

    page.get_by_label("Token").fill(look.told["token"])
    expect(page.get_by_role("button", name="Resume")).to_be_hidden()
    page.get_by_role("button", name="Pause").click()
    expect(phase).to_have_text("Paused")
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    expect(told).to_have_text("Paused: no new requests are sent.")

    page.get_by_label("URL to fetch").fill(look.told["crawled"])
    page.keyboard.press("Enter")
    expect(told).to_have_text("Added " + look.told["crawled"])
    expect(page.get_by_label("URL to fetch")).to_have_value("")

    page.get_by_label("Delay between requests").fill("0s")
    page.get_by_role("button", name="Set").click()
    expect(told).to_have_text("The delay is 0s for all hosts.")

    page.get_by_role("button", name=f"Park {host}", exact=True).click()
    back = page.get_by_role("button", name=f"Unpark {host}")
    expect(back).to_be_visible()
    back.click()
    expect(back).to_be_hidden()

    page.get_by_role("button", name="Resume").click()
    expect(told).to_have_text("Resumed.")
    expect(phase).to_have_text("No crawl is running")
    expect(page.locator("#live")).to_be_hidden()
    page.reload()
    expect(page.get_by_role("table", name="Requests")).to_contain_text("page")


def what_is_refused_is_said(look):
    """On a page of its own: the console tells of each refusal too."""
    page = look.page(watched=False)
    page.goto(look.told["live"] + "/crawl")
    told = page.locator("#told")
    page.get_by_role("button", name="Pause").click()
    expect(told).to_contain_text("controlling the crawl needs a token")
    page.get_by_label("Token").fill("a wrong one")
    with page.expect_console_message(lambda message: "--token-file" in message.text):
        page.get_by_role("button", name="Pause").click()
    expect(told).to_contain_text("the token is wrong")
    expect(told).to_contain_text("the token is in the file of --token-file")
    page.get_by_label("Token").fill(look.told["token"])
    page.get_by_label("URL to fetch").fill("nonsense")
    page.keyboard.press("Enter")
    expect(told).to_contain_text("unusable URL")
    expect(page.locator("#phase")).to_have_text("Crawling")
