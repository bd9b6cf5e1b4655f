"""A mirror, opened from the disk. The mirrored server has stopped."""

from playwright.sync_api import expect


def check_a_mirror_opens_without_a_server(session):
    page = session.page()
    page.goto("file://" + session.setup["mirror"])
    # The script, the imported style sheet and the image are loaded, although the page had a content
    # security policy, integrity digests and a base.
    expect(page).to_have_title("Read by the script")
    expect(page.get_by_role("heading", name="Tea – thé")).to_have_css("color", "rgb(0, 128, 0)")
    assert page.locator("img").evaluate("(image) => image.naturalWidth") == 7
    page.get_by_role("link", name="Green tea").click()
    expect(page.locator("#brew")).to_be_in_viewport()
    assert page.url.endswith("/docs/green_page=2.html#brew"), page.url
    page.get_by_role("link", name="Home").click()
    expect(page).to_have_title("Read by the script")
    assert all(url.startswith("file://") for url in session.requests), session.requests
