"""Use by keyboard, by screen reader, and with poor eyesight: roles, names, focus, contrast."""

from playwright.sync_api import expect

PATHS = ("/", "/?q=lantern", "/?q=unreachable+robots", "/?q=lantenr", "/?q=zeppelin", "/crawl", "/nowhere")

FAULTS = """
() => {
  const faults = [];
  const report = (node, what) => faults.push(`${what}: ${node.outerHTML.slice(0, 120)}`);
  const shown = (node) => node.checkVisibility() && !node.closest("[hidden]");
  const nameOf = (node) => {
    const by = node.getAttribute("aria-labelledby");
    const label = node.labels?.[0]?.textContent;
    return (node.getAttribute("aria-label") ?? (by ? document.getElementById(by)?.textContent : null)
      ?? label ?? node.textContent).trim();
  };
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  if (new Set(ids).size !== ids.length) faults.push("two elements have the same id");
  for (const attribute of ["aria-controls", "aria-labelledby", "aria-describedby", "for", "list"]) {
    for (const node of document.querySelectorAll(`[${attribute}]`)) {
      if (!document.getElementById(node.getAttribute(attribute))) report(node, `${attribute} leads nowhere`);
    }
  }
  for (const node of document.querySelectorAll("a[href], button, input, section, nav, [role=region]")) {
    if (shown(node) && nameOf(node) === "") report(node, "has no name");
  }
  if (document.documentElement.lang !== "en") faults.push("the page has no language");
  if (document.title === "") faults.push("the page has no title");
  if (document.querySelectorAll("main").length !== 1) faults.push("there isn't exactly one main element");
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].filter(shown).map((node) => Number(node.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1) faults.push("there isn't exactly one h1");
  for (const table of document.querySelectorAll("table")) {
    for (const cell of table.querySelectorAll("th")) if (!cell.hasAttribute("scope")) say(cell, "has no scope");
  }
  for (const node of document.querySelectorAll("[style], [onclick], script:not([src]), style")) report(node, "is inline");
  return faults;
}
"""

# The contrast between text and background must be at least 4.5, or 3 for large text (WCAG 2.2,
# success criterion 1.4.3).
CONTRAST = """
(root) => {
  const parse = (text) => {
    const numbers = text.match(/[-\\d.]+(e-?\\d+)?%?/g).map((part) => part.endsWith("%") ? parseFloat(part) / 100 : parseFloat(part));
    const wide = text.startsWith("color(");
    const [r, g, b, a = 1] = numbers;
    return wide ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
  };
  const over = (top, under) => [0, 1, 2].map((at) => top[at] * top[3] + under[at] * (1 - top[3])).concat(1);
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement ?? at.getRootNode().host) {
      const layer = parse(getComputedStyle(at).backgroundColor);
      if (layer[3] > 0) layers.push(layer);
      if (layer[3] === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const luminance = (color) => {
    const [r, g, b] = color.slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faults = [];
  let seen = 0;
  const within = root ? document.querySelector(root).shadowRoot : document.body;
  const walk = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
  for (let text = walk.nextNode(); text; text = walk.nextNode()) {
    const node = text.parentElement;
    if (text.data.trim() === "" || !node || !node.checkVisibility({ visibilityProperty: true })) continue;
    if (node.closest(".hidden, .skip, style, script")) continue;
    const style = getComputedStyle(node);
    const background = behind(node);
    const foreground = over(parse(style.color), background);
    const [bright, dark] = [luminance(foreground), luminance(background)].sort((a, b) => b - a);
    const ratio = (bright + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    seen += 1;
    if (ratio < (large ? 3 : 4.5)) faults.push(`${ratio.toFixed(2)} ${style.color} on ${background}: ${text.data.trim().slice(0, 40)}`);
  }
  return { seen, faults };
}
"""


def check_elements_have_roles_and_names(session):
    page = session.page()
    for path in PATHS:
        if path == "/nowhere":
            page = session.page(watched=False)
        page.goto(session.setup["search"] + path)
        faults = page.evaluate(FAULTS)
        assert not faults, f"{path}: {faults}"


def check_screen_readers_get_this_order(session):
    page = session.page()
    page.goto(session.setup["search"] + "/?q=unreachable+robots")
    expect(page.locator("body")).to_match_aria_snapshot(
        """
        - link "Skip to the results"
        - banner:
          - heading /Search/ [level=1]
        - main:
          - search:
            - text: /Search/
            - searchbox /Search/: unreachable robots
            - button "Search"
          - status: 2 results for “unreachable robots”
          - region "Results":
            - paragraph: /Few pages have all words/
            - list:
              - listitem:
                - paragraph
                - heading "How rules are read" [level=2]:
                  - link "How rules are read"
                - paragraph:
                  - mark: robots.txt
        - contentinfo:
          - paragraph: /40 pages, last visited/
        """
    )


def check_text_has_enough_contrast(session):
    for scheme in ("light", "dark"):
        page = session.page(color_scheme=scheme)
        for path in PATHS[:-1]:
            page.goto(session.setup["search"] + path)
            # Measure colours only after transitions have ended.
            page.evaluate("() => Promise.all(document.getAnimations().map((each) => each.finished))")
            found = page.evaluate(CONTRAST, None)
            assert found["seen"] > 5, f"{path}: {found}"
            assert not found["faults"], f"{scheme} {path}: {found['faults']}"


def check_the_focus_is_always_visible(session):
    page = session.page()
    for path in ("/?q=lantern", "/crawl"):
        page.goto(session.setup["search"] + path)
        # Focus the last element of the page, so that the first Tab leads to the first element.
        page.locator(".skip").focus()
        page.keyboard.press("Shift+Tab")
        steps = page.locator("a[href]:visible, button:visible, input:visible, [tabindex='0']:visible").count()
        assert steps > 2
        seen = set()
        for _ in range(steps):
            page.keyboard.press("Tab")
            width, style, key = page.evaluate(
                """() => { const node = document.activeElement; const style = getComputedStyle(node);
                const { x, y } = node.getBoundingClientRect();
                const place = `${Math.round(x + scrollX)} ${Math.round(y + scrollY)}`;
                return [parseFloat(style.outlineWidth), style.outlineStyle, place + node.outerHTML.slice(0, 200)]; }"""
            )
            assert width >= 2 and style != "none", key
            seen.add(key)
        assert len(seen) == steps, f"{path}: {len(seen)} of {steps} can be reached"


def check_the_skip_link_works(session):
    page = session.page()
    page.goto(session.setup["search"] + "/?q=lantern")
    skip = page.get_by_role("link", name="Skip to the results")
    expect(page.get_by_role("searchbox")).to_be_focused()
    # The title and the skip link come before the field, which has the focus.
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#answer .title a").first).to_be_focused()


def check_languages_of_results_are_marked(session):
    page = session.page()
    page.goto(session.setup["search"])
    page.get_by_role("searchbox").fill("höflichkeit")
    expect(page.locator("#answer .title")).to_have_attribute("lang", "de")
    expect(page.locator("#answer .excerpt")).to_have_attribute("lang", "de")
    expect(page.locator("#answer .where")).to_have_text("site › de › einführung".replace("site", session.setup["site"][7:]))
