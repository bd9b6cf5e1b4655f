"""Extracts the fields of rules.toml from the fixtures with parsel, as a Scrapy spider would, and
prints them as JSON.

usage: fields.py FOLDER
"""

import json
import re
import sys
from pathlib import Path
from urllib.parse import urljoin

from parsel import Selector

MONTHS = {
    "de": "januar februar märz april mai juni juli august september oktober november dezember",
    "en": "january february march april may june july august september october november december",
}


def text(nodes):
    """Returns the text of the first node, with white space normalised. None if empty or missing."""
    for node in nodes[:1]:
        found = "".join(node.xpath(".//text()[not(ancestor::script or ancestor::style)]").getall())
        return " ".join(found.split()) or None
    return None


def texts(nodes):
    found = (text([node]) for node in nodes)
    return [one for one in found if one]


def attr(node, css, name):
    return words(node.css(css).attrib.get(name))


def words(value):
    return " ".join(value.split()) or None if value is not None else None


def first(pattern, value):
    found = re.search(pattern, value or "")
    return found and found[found.re.groups and 1]


def number(value, decimal="."):
    """Returns the first number in a text. None if its separators aren't those of the locale."""
    group = "," if decimal == "." else "."
    found = re.search(r"[-−]?\d[\d.,]*", value or "")
    if not found:
        return None
    digits = found[0].replace("−", "-").rstrip(".,")
    plain = rf"-?(\d+|\d{{1,3}}(\{group}\d{{3}})+)(\{decimal}\d+)?"
    if not re.fullmatch(plain, digits):
        return None
    value = float(digits.replace(group, "").replace(decimal, "."))
    return int(value) if value == int(value) else value


def day(value, language="en"):
    """Parses a day such as 2026-03-08, 08.03.2026 or 8. März 2026, which a time may follow."""
    if value is None:
        return None
    if found := re.match(r"\d{4}-\d\d-\d\d", value):
        return found[0]
    if found := re.search(r"(\d{1,2})\.(\d{1,2})\.(\d{2,4})", value):
        date, month, year = (int(part) for part in found.groups())
        return f"{year + 2000 if year < 100 else year}-{month:02}-{date:02}"
    if found := re.search(r"(\d{1,2})\.? (\w+)\.? (\d{4})", value):
        for month, name in enumerate(MONTHS[language].split(), 1):
            if name.startswith(found[2].lower()):
                return f"{found[3]}-{month:02}-{int(found[1]):02}"
    return None


class Page(Selector):
    """A page with the base URL that Scrapy's response.urljoin uses."""

    def url(self, href):
        base = urljoin(self.address, self.css("base::attr(href)").get(""))
        return href and urljoin(base, href)

    def urls(self, nodes):
        return [self.url(words(node.attrib["href"])) for node in nodes]

    def href(self, node, css, name="href"):
        return self.url(attr(node, css, name))


def shop(page):
    def product(node):
        return {
            "sku": words(node.attrib["data-sku"]),
            "name": text(node.css("h2.card__title > a")),
            "url": page.href(node, "h2 a"),
            "price": number(text(node.css(".price .now"))),
            "was": number(text(node.css(".price .was"))),
            "stars": number(first(r"([\d.]+) out of", attr(node, ".card__rating", "aria-label"))),
            "image": page.href(node, "img", "data-src"),
            "available": bool(node.css(".stock.in-stock")),
            "badges": texts(node.css(".badge")),
            "specs": texts(node.css("table.specs td")),
        }

    return {
        "title": text(page.css("h1")),
        "heading": words("".join(page.css("h1::text").getall())),
        "total": number(attr(page, ".count", "data-total")),
        "shown": number(first(r"of (\d+) results", text(page.css(".count")))),
        "crumbs": texts(page.css(".crumbs li")),
        "canonical": page.href(page, "link[rel=canonical]"),
        "next": page.href(page, "a[rel~=next]"),
        "pages": page.urls(page.css("nav.pages a:not(.next)")),
        "mail": page.href(page, "footer a[href^='mailto:']"),
        "noscript": page.href(page, "noscript .tracker img", "src"),
        "sponsored": page.href(page, ".product.sponsored h2 > a"),
        "rows": texts(page.css("table.specs > tr")),
        "products": [product(node) for node in page.css("ul.products > li.product")],
    }


def forum(page):
    def quote(nodes):
        for node in nodes[:1]:
            return {
                "of": node.attrib["data-post"],
                "author": text(node.css("cite")),
                "text": text(node.css("p")),
            }
        return None

    def post(node):
        author = text(node.css("td.author"))
        return {
            "id": node.attrib["id"],
            "author": text(node.css("td.author > a, td.author > i")),
            "profile": page.href(node, "td.author > a"),
            "posts": number(first(r"Posts: ([\d,]+)", author)),
            "day": day(text(node.css("a.time"))),
            "text": text(node.css("div.text")),
            "links": page.urls(node.css("div.text a")),
            "likes": number(text(node.css(".likes"))),
            "edited": day(first(r"edited on (.+)", text(node.css(".edited")))),
            "cited": texts(node.css("blockquote.quote > cite")),
            "quote": quote(node.css("blockquote.quote")),
        }

    return {
        "title": text(page.css("h1")),
        "views": number(first(r"([\d,]+) views", text(page.css(".info")))),
        "solved": bool(page.css(".info .solved")),
        "draft": text(page.css("textarea[name=t]")),
        "similar": page.urls(page.css(".similar a")),
        "posts": [post(node) for node in page.css("tr.post")],
    }


def numbers(page):
    def value(node):
        return {
            "name": text(node.css("th")),
            "isin": first("[A-Z]{2}[0-9A-Z]{8}", attr(node, "th a", "href")),
            "price": number(text(node.css(".kurs")), ","),
            "change": number(text(node.css(".diff")), ","),
            "volume": number(text(node.css(".umsatz")), ","),
            "day": day(text(node.css(".tag")), "de"),
            "note": text(node.css("td:last-child")),
        }

    return {
        "day": day(text(page.css("h1")), "de"),
        "stand": day(text(page.css("#stand time")), "de"),
        "iso": day(attr(page, "#stand time", "datetime")),
        "columns": texts(page.css("table.kurse thead th")),
        "total": number(text(page.css("tr.summe td:nth-child(2)")), ","),
        "source": page.href(page, ".quelle a[download]"),
        "size": number(first(r"\(([^)]+)\)", text(page.css(".quelle"))), ","),
        "values": [value(node) for node in page.css("table.kurse tr.wert")],
    }


def article(page):
    def json_ld():
        for script in page.css('script[type="application/ld+json"]::text').getall():
            try:
                data = json.loads(script)
            except ValueError:
                continue
            yield from data.get("@graph", [data])

    def item(kind):
        return next(one for one in json_ld() if kind in one["@type"])

    def meta(name):
        css = f'meta[property="{name}"], meta[name="{name}"]'
        return [words(node.attrib["content"]) for node in page.css(css)]

    news = item("NewsArticle")
    micro = page.css('[itemtype="https://schema.org/NewsArticle"]')
    return {
        "headline": news["headline"],
        "published": day(news["datePublished"]),
        "modified": day(news["dateModified"]),
        "authors": [author["name"] for author in news["author"]],
        "author-pages": [page.url(one["url"]) for one in news["author"] if "url" in one],
        "image": news["image"]["url"],
        "width": news["image"]["width"],
        "words": news["wordCount"],
        "free": news["isAccessibleForFree"],
        "publisher": news["publisher"]["@id"],
        "crumbs": [one["name"] for one in item("BreadcrumbList")["itemListElement"]],
        "section": news.get("articleSection"),
        "og-title": meta("og:title")[0],
        "og-images": meta("og:image"),
        "og-time": day(meta("article:published_time")[0]),
        "card": meta("twitter:card")[0],
        "micro-headline": text(micro.css("[itemprop=headline]")),
        "micro-authors": texts(micro.css("[itemprop=author] [itemprop=name]")),
        "micro-page": page.href(micro, "[itemprop=author] [itemprop=url]"),
        "micro-image": page.href(micro, "img[itemprop=image]", "src"),
        "micro-day": day(attr(micro, "time[itemprop=datePublished]", "datetime")),
        "micro-words": number(attr(micro, "meta[itemprop=wordCount]", "content")),
        "meta-author": attr(page, "meta[name=author]", "content"),
        "lead": text(page.css(".body > p.lead")),
        "paragraphs": texts(page.css(".body > p")),
        "links": page.urls(page.css(".body a[href]")),
        "caption": text(page.css("figcaption")),
        "tags": texts(page.css("a[rel~=tag]")),
        "boats": [first(r"\d+:\d\d", one) for one in texts(page.css(".body li"))],
        "comments": number(text(page.css(".comments h2"))),
        "second-comment": text(page.css(".comments p:nth-of-type(2)")),
        "emphasis": page.css("h1").get(),
    }


def events(page):
    def event(node):
        begin = attr(node, "time.from", "datetime")
        return {
            "name": text(node.css("h4 [itemprop=name]")),
            "url": page.href(node, "h4 a"),
            "day": day(begin),
            "written-day": day(text(node.css("time.from")), "de"),
            "begin": first(r"T(\d\d:\d\d)", begin),
            "end": first(r"\d{1,2}:\d\d", text(node.css("time.to"))),
            "place": text(node.css(".where")),
            "price": number(text(node.css(".price")), ","),
            "cancelled": bool(node.css(".note")),
            "tags": texts(node.css(".tags li")),
            "calendars": page.urls(node.css("a.ics")),
            "image": page.href(node, "img", "src"),
        }

    micro = page.css('[itemtype="http://schema.org/Event"]')
    return {
        "month": attr(page, ".month", "data-month"),
        "days": texts(page.css(".day > h3")),
        "next": page.href(page, "nav a[rel=next]"),
        "names": texts(micro.xpath("./h4//*[@itemprop='name']")),
        "places": texts(micro.css("[itemprop=location] [itemprop=name]")),
        "events": [event(node) for node in page.css(".event")],
    }


def main(folder):
    found = {}
    for read in [shop, forum, numbers, article, events]:
        page = Page(text=(Path(folder) / f"{read.__name__}.html").read_text(encoding="utf-8"))
        page.address = f"https://{read.__name__}.example/list/page.html?page=2"
        found[read.__name__] = read(page)
    json.dump(found, sys.stdout, ensure_ascii=False)


main(sys.argv[1])
