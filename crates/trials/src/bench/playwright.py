"""Renders the pages of a site with Playwright, as a crawler without rules would.

Usage: playwright.py BROWSER TABS URL...
"""

import asyncio
import sys

from playwright.async_api import async_playwright


async def main(program, tabs, urls):
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        waiting = iter(urls)

        async def work():
            for url in waiting:
                # A context for each page, as pages of a crawl share no cookies.
                context = await browser.new_context()
                page = await context.new_page()
                await page.goto(url, wait_until="networkidle")
                assert "about" in await page.content(), url
                await context.close()

        await asyncio.gather(*(work() for _ in range(tabs)))
        await browser.close()


asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
