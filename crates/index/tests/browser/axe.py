"""Checks a page in the browser against the accessibility rules of axe-core."""

import os

RUN = """async (within) => {
  // Measure colours only after animations have ended.
  await Promise.all(document.getAnimations().map((each) => each.finished.catch(() => {})));
  const report = await axe.run(within ? { fromShadowDom: within } : document, { resultTypes: ["violations"], preload: false });
  const nodes = (rule) => rule.nodes.map((node) => `${node.target.flat().join(" ")}: ${node.failureSummary}`);
  return { passes: report.passes.length, violations: report.violations.map((rule) => `${rule.id}: ${nodes(rule).join("; ")}`) };
}"""


def violations(page, within=None):
    """Returns the violations of axe-core's default rules in a page and its shadow trees, or in one
    element, given by selectors from shadow tree to shadow tree."""
    if not page.evaluate("'axe' in globalThis"):
        with open(os.environ["CRAWL_AXE"], encoding="utf-8") as file:
            page.evaluate(file.read())
    report = page.evaluate(RUN, within)
    assert report["passes"] > 5, "the rules were hardly applied"
    return report["violations"]
