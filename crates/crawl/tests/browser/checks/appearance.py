"""Themes, small screens, animations, print."""

import re
import struct
import zlib

from playwright.sync_api import expect

PATHS = ("/", "/?q=lantern", "/crawl")


def colours(png):
    """Estimates the number of colours in a screenshot. Enough to tell an empty page from a full one."""
    width, height = struct.unpack(">II", png[16:24])
    assert png[24:26] in (b"\x08\x02", b"\x08\x06"), "8 bits, RGB or RGBA"
    step = 3 if png[25] == 2 else 4
    at, packed = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        if kind == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += 12 + length
    data = zlib.decompress(packed)
    line = width * step + 1
    # Pixels are stored as differences from their neighbours, so a page of one colour has few values.
    seen = set()
    for row in range(0, height, 3):
        pixels = data[row * line + 1 : (row + 1) * line]
        seen.update(pixels[x : x + step] for x in range(0, len(pixels), step))
    return len(seen)


def background(page, node="document.documentElement"):
    return page.evaluate(f"getComputedStyle({node}).backgroundColor")


def check_pages_render_in_both_themes(session):
    backgrounds = set()
    for scheme in ("light", "dark"):
        page = session.page(color_scheme=scheme)
        for path in PATHS:
            page.goto(session.setup["search"] + path)
            assert colours(page.screenshot()) > 60, f"{path} is empty"
        backgrounds.add(background(page))
    assert len(backgrounds) == 2, backgrounds


# Elements that overflow their box, if the box neither scrolls nor shows an ellipsis.
CUT_OFF = """() => [...document.querySelectorAll("body *")].filter((node) => {
  const { overflowX, textOverflow, display } = getComputedStyle(node);
  const mayOverflow = overflowX === "auto" || textOverflow === "ellipsis" || node.closest(".hidden, .skip, svg");
  return !mayOverflow && display !== "inline" && node.clientWidth > 0 && node.scrollWidth > node.clientWidth + 1;
}).map((node) => `${node.scrollWidth} in ${node.clientWidth}: ${node.outerHTML.slice(0, 120)}`)"""

OUTSIDE = """() => [...document.querySelectorAll("body *")]
  .filter((node) => node.getBoundingClientRect().right > innerWidth).map((node) => node.outerHTML.slice(0, 80))"""


def assert_fits(page, name):
    wide = page.evaluate("document.documentElement.scrollWidth")
    width = page.viewport_size["width"]
    outside = page.evaluate(OUTSIDE) if wide > width else []
    assert wide <= width, f"{name} is {wide} px wide in a window of {width} px: {outside}"
    cut_off = page.evaluate(CUT_OFF)
    assert cut_off == [], f"{name} on {width}: {cut_off}"


def check_pages_fit_small_screens(session):
    for width in (320, 390, 768):
        page = session.page(viewport={"width": width, "height": 640})
        for path in PATHS:
            page.goto(session.setup["search"] + path)
            assert_fits(page, path)
        page.goto(session.setup["live"] + "/crawl")
        page.locator("#controls").wait_for()
        # A parked host with a name of the maximum length.
        page.evaluate(
            """() => { const button = document.createElement("button");
            button.textContent = `Unpark ${"a".repeat(250)}`;
            const parked = document.getElementById("parked");
            parked.hidden = false; parked.append(button); }"""
        )
        assert_fits(page, "/crawl of a running crawl")


def open_report(session, path=None, **options):
    """Opens a page that a crawl wrote to the disk, and that loads nothing."""
    page = session.page(**options)
    with open(path or session.setup["report"], encoding="utf-8") as file:
        page.set_content(file.read())
    return page


def expand(page):
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")


# Texts that extend beyond the edge of their plot, so that they are cut off.
TEXT_OUTSIDE_PLOTS = """() => [...document.querySelectorAll("svg text")].filter((text) => {
  const [inner, outer] = [text, text.ownerSVGElement].map((node) => node.getBoundingClientRect());
  return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1;
}).map((text) => text.outerHTML)"""


# Tables that a reader has to scroll sideways. Ignores the tables of numbers behind plots.
WIDE_TABLES = """() => [...document.querySelectorAll(".t")]
  .filter((box) => !box.closest("figure") && box.scrollWidth > box.clientWidth + 1)
  .map((box) => `${box.scrollWidth} in ${box.clientWidth}: ${box.innerText.slice(0, 80)}`)"""


def check_report_tables_need_no_sideways_scrolling(session):
    for path in (session.setup["report"], *session.setup["to_fix"]):
        for width in (320, 390, 768, 1000, 1200):
            page = open_report(session, path, viewport={"width": width, "height": 844})
            expand(page)
            assert page.evaluate(WIDE_TABLES) == [], f"{path} on {width}"


def check_report_files_fit_small_screens(session):
    for path in (session.setup["report"], *session.setup["to_fix"]):
        for width in (320, 360, 390, 768):
            page = open_report(session, path, viewport={"width": width, "height": 844})
            expand(page)
            assert_fits(page, path)
            assert page.evaluate(TEXT_OUTSIDE_PLOTS) == [], width


# Cells on a small screen that lack a name or a value.
NAMELESS_CELLS = """() => [...document.querySelectorAll(".w td, .m td")].filter((cell) => cell.checkVisibility())
  .filter((cell) => cell.innerText.trim() === "" || !cell.dataset.name).map((cell) => cell.outerHTML)"""


def check_cells_on_small_screens_have_a_name_and_a_value(session):
    for path in session.setup["to_fix"]:
        page = open_report(session, path, viewport={"width": 390, "height": 844})
        expand(page)
        assert page.evaluate(NAMELESS_CELLS) == [], path


def check_the_list_of_fixes_comes_first_and_needs_no_script(session):
    for path in session.setup["to_fix"][:3]:
        page = open_report(session, path, java_script_enabled=False)
        expect(page.get_by_role("heading", level=2).first).to_have_text("What to fix")
        broken = page.get_by_role("region", name="Broken links").locator("table").first
        expect(broken).to_contain_text("not found (404)")
        expect(page.get_by_text("of 33 pages").first).to_be_visible()
        expect(page.get_by_role("link", name=re.compile("grade [A-F] Broken links"))).to_be_visible()
    page = open_report(session, session.setup["to_fix"][1])
    for name in ("Titles", "Descriptions", "Headings", "Images", "Large pages", "Blocked by robots.txt"):
        expect(page.get_by_role("heading", name=re.compile("^" + name)).first).to_be_visible()
    for link in page.locator("td a").all():
        assert re.match("https?://", link.get_attribute("href"))
        assert link.get_attribute("rel") == "nofollow noopener noreferrer"


def check_a_click_on_a_column_sorts_the_table(session):
    page = open_report(session, session.setup["to_fix"][1])
    table = page.get_by_role("region", name="Broken links").locator("table").first
    first = table.locator("tbody tr").first
    heading = table.get_by_role("columnheader", name="broken link")
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    expect(first).to_contain_text("/gone0")
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    expect(first).not_to_contain_text("/gone0")
    # A long table is sorted as a whole, although most of its rows are collapsed.
    rest = page.locator("details.rest").first
    button = rest.locator("xpath=preceding-sibling::*[1]").locator("th button").first
    button.click()
    button.click()
    in_order = """(rest) => {
        const parts = [rest.previousElementSibling, rest];
        const rows = parts.flatMap((part) => [...part.querySelectorAll("tbody tr")]);
        const texts = rows.map((row) => row.cells[0].textContent.trim());
        const compare = (one, other) => one.localeCompare(other, "en", { numeric: true });
        return texts.length > 20 && texts.every((text, at) => !at || compare(texts[at - 1], text) >= 0);
    }"""
    assert rest.evaluate(in_order)


def check_plots_have_text_alternatives(session):
    page = open_report(session)
    plots = page.get_by_role("img")
    assert plots.count() == page.locator("svg").count() > 3
    for plot in plots.all():
        # The title, and what the plot shows.
        expect(plot).to_have_accessible_name(re.compile(r"\w+ .*\d"))


def check_the_printed_report_is_complete(session):
    page = open_report(session)
    numbers = page.locator("#outcomes td").first
    expect(numbers).to_be_hidden()
    page.emulate_media(media="print", color_scheme="dark")
    assert background(page, "document.body") == "rgb(255, 255, 255)"
    assert numbers.evaluate("(cell) => cell.checkVisibility({ contentVisibilityAuto: true })")
    # The script of the page only sorts tables, and nothing is loaded.
    expect(page.locator("script[src], link, img, iframe")).to_have_count(0)


def check_the_report_follows_the_preferred_theme(session):
    backgrounds = {background(open_report(session, color_scheme=scheme), "document.body") for scheme in ("light", "dark")}
    assert backgrounds == {"rgb(255, 255, 255)", "rgb(22, 24, 28)"}, backgrounds


def check_the_report_shows_estimates_of_a_sample(session):
    page = open_report(session, viewport={"width": 390, "height": 844})
    expect(page.get_by_role("heading", name="Sample", exact=True)).to_be_visible()
    expect(page.get_by_text("4 drawn from 200 URLs found, in 1 stratum")).to_be_visible()
    plot = page.get_by_role("img", name=re.compile("Estimates"))
    expect(plot).to_be_visible()
    expect(plot).to_have_accessible_name(re.compile("Bytes per page: "))
    shares = page.locator("#sample tbody tr")
    expect(shares.first).to_be_hidden()
    page.evaluate("document.querySelector('#sample details').open = true")
    expect(shares.filter(has_text="return a page")).to_contain_text("100.0 %")
    expect(shares.filter(has_text="bytes in total")).to_be_visible()


def check_the_report_links_to_pages(session):
    page = open_report(session)
    link = page.get_by_role("region", name="Broken pages").get_by_role("link").first
    assert link.get_attribute("rel") == "nofollow noopener noreferrer"
    expand(page)
    expect(page.get_by_text("And 30 hosts that were never contacted.")).to_be_visible()


def check_text_can_be_enlarged_to_200_percent(session):
    page = session.page(viewport={"width": 640, "height": 800})
    page.goto(session.setup["search"] + "/?q=lantern")
    page.evaluate(
        """() => { const sheet = new CSSStyleSheet(); sheet.replaceSync("html { font-size: 200% }");
        document.adoptedStyleSheets = [sheet]; }"""
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    expect(page.get_by_role("button", name="Search")).to_be_in_viewport(ratio=1)


def check_reduced_motion_stops_animations(session):
    page = session.page(reduced_motion="reduce")
    page.goto(session.setup["search"] + "/?q=lantern")
    page.evaluate("document.getElementById('search').classList.add('busy')")
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((node) => [null, "::after", "::before"].some((part) => {
          const style = getComputedStyle(node, part);
          return style.animationName !== "none" || parseFloat(style.transitionDuration) > 0;
        })).map((node) => node.outerHTML.slice(0, 80))"""
    )
    assert moving == [], moving


def check_only_results_are_printed(session):
    page = session.page()
    page.goto(session.setup["search"] + "/?q=lantern")
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.get_by_role("searchbox")).to_be_hidden()
    expect(page.locator(".hit").first).to_be_visible()
    assert background(page) == "rgb(255, 255, 255)"
