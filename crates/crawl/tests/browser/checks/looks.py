"""Themes, small screens, motion, paper: how the pages look."""

import struct
import zlib

from playwright.sync_api import expect

PATHS = ("/", "/?q=lantern", "/crawl")


def colours(png):
    """How many colours a screenshot has, up to some hundred."""
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
    # Filtered pixels are as many as there are kinds of change: a page of one colour has hardly any.
    seen = set()
    for row in range(0, height, 3):
        pixels = data[row * line + 1 : (row + 1) * line]
        seen.update(pixels[x : x + step] for x in range(0, len(pixels), step))
    return len(seen)


def ground(page, of="document.documentElement"):
    return page.evaluate(f"getComputedStyle({of}).backgroundColor")


def check_pages_are_drawn_in_both_themes(look):
    grounds = set()
    for scheme in ("light", "dark"):
        page = look.page(color_scheme=scheme)
        for path in PATHS:
            page.goto(look.told["search"] + path)
            assert colours(page.screenshot()) > 60, f"{path} is empty"
        grounds.add(ground(page))
    assert len(grounds) == 2, grounds


def check_nothing_sticks_out_of_small_screens(look):
    for width in (320, 768):
        page = look.page(viewport={"width": width, "height": 640})
        for path in PATHS:
            page.goto(look.told["search"] + path)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{path} is {wide} wide on {width}"


def check_text_may_be_twice_as_large(look):
    page = look.page(viewport={"width": 640, "height": 800})
    page.goto(look.told["search"] + "/?q=lantern")
    page.evaluate(
        """() => { const sheet = new CSSStyleSheet(); sheet.replaceSync("html { font-size: 200% }");
        document.adoptedStyleSheets = [sheet]; }"""
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    expect(page.get_by_role("button", name="Search")).to_be_in_viewport(ratio=1)


def check_nothing_moves_for_those_who_want_it_still(look):
    page = look.page(reduced_motion="reduce")
    page.goto(look.told["search"] + "/?q=lantern")
    page.evaluate("document.getElementById('search').classList.add('busy')")
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((node) => [null, "::after", "::before"].some((part) => {
          const style = getComputedStyle(node, part);
          return style.animationName !== "none" || parseFloat(style.transitionDuration) > 0;
        })).map((node) => node.outerHTML.slice(0, 80))"""
    )
    assert moving == [], moving


def check_paper_shows_results_alone(look):
    page = look.page()
    page.goto(look.told["search"] + "/?q=lantern")
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.get_by_role("searchbox")).to_be_hidden()
    expect(page.locator(".hit").first).to_be_visible()
    assert ground(page) == "rgb(255, 255, 255)"
