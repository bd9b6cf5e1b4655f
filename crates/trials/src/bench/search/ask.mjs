// `node ask.mjs BUNDLE QUERIES.json` runs queries on a static search. For each query, prints the URLs
// of the first ten results, the time in microseconds, and how much was loaded without a cache.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const [bundle, queries] = process.argv.slice(2);
await import(join(bundle, 'search.js'));
const { Search } = globalThis.CrawlSearch;

let [bytes, files] = [0, 0];
const load = async (name) => {
  const read = await readFile(join(bundle, name));
  bytes += read.length;
  files += 1;
  return new Uint8Array(read);
};

const rows = [];
for (const query of JSON.parse(await readFile(queries, 'utf8'))) {
  [bytes, files] = [0, 0];
  const started = process.hrtime.bigint();
  const search = await Search.open(load);
  const answer = await search.search(query, { limit: 10, now: 0 });
  const micros = Number((process.hrtime.bigint() - started) / 1000n);
  rows.push({ urls: answer.results.map((result) => result.url), micros, bytes, files });
}
process.stdout.write(JSON.stringify(rows));
