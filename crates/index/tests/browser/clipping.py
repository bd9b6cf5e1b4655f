"""Finds text that is cut off on a page, in its dialogs, and in the shadow trees of its boxes."""

# Returns elements that hide overflowing content or extend beyond the window, and the window's own
# width. An ellipsis is allowed, except in a title or the name of a section.
CLIPPED = """() => {
  const problems = [];
  const report = (node, what) => problems.push(`${what}: ${node.outerHTML.slice(0, 160)}`);
  const search = (root) => {
    for (const node of root.querySelectorAll("*")) {
      if (node.shadowRoot) search(node.shadowRoot);
      if (node.closest(".hidden, .unseen, .skip, svg, style, script, input")) continue;
      const { overflowX, overflowY, textOverflow, webkitLineClamp, display, visibility } = getComputedStyle(node);
      if (display === "none" || visibility === "hidden" || node.clientWidth === 0) continue;
      const hides = (overflow) => overflow === "hidden" || overflow === "clip";
      const isName = node.closest(".title, .section") !== null;
      const mayBeCut = !isName && (textOverflow === "ellipsis" || webkitLineClamp !== "none");
      if (hides(overflowX) && !mayBeCut && node.scrollWidth > node.clientWidth + 1) {
        report(node, `${node.scrollWidth} wide in ${node.clientWidth}`);
      }
      if (hides(overflowY) && !mayBeCut && node.scrollHeight > node.clientHeight + 1) {
        report(node, `${node.scrollHeight} high in ${node.clientHeight}`);
      }
      const { left, right } = node.getBoundingClientRect();
      if (node.textContent.trim() !== "" && (right > innerWidth + 1 || left < -1)) report(node, "outside the window");
    }
  };
  search(document);
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) problems.push(`the page is ${scrollWidth} wide on ${innerWidth}`);
  return problems;
}"""


def assert_nothing_is_clipped(page, name):
    found = page.evaluate(CLIPPED)
    assert not found, f"{name} on {page.viewport_size['width']}:\n" + "\n".join(found)
