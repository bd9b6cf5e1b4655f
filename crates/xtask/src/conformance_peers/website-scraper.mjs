// website-scraper with its politest options. It supports neither robots.txt nor a delay.
// Arguments: URL, folder for the pages, which must not exist.
import scrape from 'website-scraper';

await scrape({
    urls: [process.argv[2]],
    directory: process.argv[3] + '/pages' + Date.now(),
    recursive: true,
    maxRecursiveDepth: 50,
    requestConcurrency: 1,
    ignoreErrors: true,
    request: { headers: { 'User-Agent': 'website-scraper/6 (+https://bot.example/)' }, timeout: { request: 8000 } },
});
