"""Scrapy's CrawlSpider with its politest settings. Arguments: URL, folder for the state."""
import sys

from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

url, folder = sys.argv[1:3]


class Site(CrawlSpider):
    name = "site"
    start_urls = [url]
    rules = [Rule(LinkExtractor(), follow=True)]


process = CrawlerProcess({
    "ROBOTSTXT_OBEY": True,
    "USER_AGENT": "scrapybot (+https://bot.example/)",
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "DOWNLOAD_DELAY": 0.2,
    "RANDOMIZE_DOWNLOAD_DELAY": False,
    "DOWNLOAD_TIMEOUT": 8,
    "RETRY_TIMES": 1,
    "HTTPCACHE_ENABLED": True,
    "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
    "HTTPCACHE_DIR": folder + "/cache",
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "ERROR",
})
process.crawl(Site)
process.start()
