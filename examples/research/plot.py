"""Counts the pages of a crawl by outcome: a table on stdout, and a bar chart.

usage: plot.py TABLES SVG

TABLES is a folder that `crawl export --to csv` wrote. Only Python itself is needed. DuckDB makes the
same table with
SELECT outcome, count(*) AS pages, sum(bytes) AS bytes FROM 'TABLES/pages.csv' GROUP BY 1 ORDER BY 1
"""

import csv
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROW_HEIGHT = 24
LABEL_WIDTH = 130
MAX_BAR_WIDTH = 400
WIDTH = LABEL_WIDTH + MAX_BAR_WIDTH + 80


def chart(pages):
    """Draws a bar for each outcome, between its name and its number of pages."""
    svg = ElementTree.Element("svg", xmlns="http://www.w3.org/2000/svg", width=str(WIDTH),
                              height=str(ROW_HEIGHT * len(pages)))
    svg.set("font-family", "sans-serif")
    svg.set("font-size", "14")
    ElementTree.SubElement(svg, "title").text = "Pages by outcome"
    for row, (outcome, count) in enumerate(sorted(pages.items())):
        top = row * ROW_HEIGHT
        width = MAX_BAR_WIDTH * count / max(pages.values())
        ElementTree.SubElement(svg, "rect", x=str(LABEL_WIDTH), y=str(top + 3),
                               width=f"{width:.1f}", height=str(ROW_HEIGHT - 6), fill="#4477aa")
        for x, text in [(0, outcome), (LABEL_WIDTH + width + 6, count)]:
            label = ElementTree.SubElement(svg, "text", x=f"{x:.1f}", y=str(top + 17))
            label.text = str(text)
    return svg


def main(tables, svg):
    pages, size = Counter(), Counter()
    # Cells contain text from servers; by default the module rejects more than 131,072 characters.
    csv.field_size_limit(1 << 30)
    with open(Path(tables) / "pages.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            pages[row["outcome"]] += 1
            size[row["outcome"]] += int(row["bytes"])
    print(f"{'outcome':<15}{'pages':>9}{'bytes':>15}")
    for outcome in sorted(pages):
        print(f"{outcome:<15}{pages[outcome]:>9}{size[outcome]:>15}")
    ElementTree.ElementTree(chart(pages)).write(svg, encoding="utf-8", xml_declaration=True)


main(*sys.argv[1:])
