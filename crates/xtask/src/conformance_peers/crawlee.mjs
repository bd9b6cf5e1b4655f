// Crawlee's CheerioCrawler with its politest options. Arguments: URL.
import { CheerioCrawler, Configuration } from '@crawlee/cheerio';

const name = 'crawleebot/1.0 (+https://bot.example/)';
const crawler = new CheerioCrawler({
    respectRobotsTxtFile: { userAgent: name },
    maxConcurrency: 1,
    // sameDomainDelaySecs has no effect for hosts that are addresses.
    maxRequestsPerMinute: 300,
    maxRequestRetries: 1,
    requestHandlerTimeoutSecs: 8,
    navigationTimeoutSecs: 8,
    preNavigationHooks: [(_, options) => {
        options.useHeaderGenerator = false;
        options.headers = { ...options.headers, 'User-Agent': name };
    }],
    requestHandler: ({ enqueueLinks }) => enqueueLinks({ strategy: 'all' }),
}, new Configuration({ persistStorage: false, logLevel: 'ERROR' }));
await crawler.run([process.argv[2]]);
