"""Rules of accessibility, by axe-core, on a page as it stands in the browser."""

import os

RUN = """async (within) => {
  // Colours are measured when they no longer change.
  await Promise.all(document.getAnimations().map((each) => each.finished.catch(() => {})));
  const found = await axe.run(within ? { fromShadowDom: within } : document, { resultTypes: ["violations"], preload: false });
  const nodes = (rule) => rule.nodes.map((node) => `${node.target.flat().join(" ")}: ${node.failureSummary}`);
  return { passes: found.passes.length, violations: found.violations.map((rule) => `${rule.id}: ${nodes(rule).join("; ")}`) };
}"""


def violations(page, within=None):
    """What axe-core finds in a page and its shadow trees, by its default rules; or in one element,
    named by selectors from shadow tree to shadow tree."""
    if not page.evaluate("'axe' in globalThis"):
        with open(os.environ["CRAWL_AXE"], encoding="utf-8") as file:
            page.evaluate(file.read())
    found = page.evaluate(RUN, within)
    assert found["passes"] > 5, "the rules were hardly applied"
    return found["violations"]
