// simplecrawler with its politest options. Arguments: URL.
const Crawler = require('simplecrawler');

const crawler = new Crawler(process.argv[2]);
crawler.respectRobotsTxt = true;
crawler.interval = 200;
crawler.maxConcurrency = 1;
crawler.filterByDomain = false;
crawler.timeout = 8000;
crawler.userAgent = 'simplecrawler/1.1.9 (+https://bot.example/)';
crawler.on('complete', () => process.exit(0));
crawler.start();
