//! The keys under which the engine stores data besides the frontier's own tables.

/// Totals over all runs of the crawl, as JSON.
pub(crate) const META_TOTALS: &str = "totals";
/// The seeds of all runs and the targets of their redirects, one per line.
pub(crate) const META_SCOPE_SEEDS: &str = "scope_seeds";
/// A line for each redirect of a seed, or of a seed's redirect target: the URL, a space, the
/// target.
pub(crate) const META_SEED_TARGETS: &str = "seed_targets";
/// Prefix of a digest of a seed's redirect. Under this key all workers of a crawl share the
/// redirect. Keys that begin with `crawl ` are stored once for all workers.
pub(crate) const META_SHARED_TARGET: &str = "crawl target ";
/// Set once any worker of a crawl has fetched a seed.
pub(crate) const META_SHARED_SEED: &str = "crawl seed fetched";
/// Whether the last run was cut off, for example by a crash.
pub(crate) const META_RUN: &str = "run";
/// The round that the crawl is in, as JSON.
pub(crate) const META_ROUND: &str = "round";
/// The parked hosts of the crawl, as a JSON list.
pub(crate) const META_PARKED: &str = "parked";
/// The state of the trap detector.
pub(crate) const META_TRAPS: &str = "traps";
/// The draw of the sample. Absent before the draw.
pub(crate) const META_SAMPLE: &str = crawl_sample::DRAW_KEY;
/// The design of the walk, and its seeds.
pub(crate) const META_WALK: &str = crawl_sample::WALK_KEY;
/// Prefix of a walker's number. The value under this key is the walker's position.
pub(crate) const META_WALKER: &str = "walker ";
/// Prefix of a page's URL. The key holds the links of that page, for walkers that reach the page
/// again.
pub(crate) const META_WALKED: &str = "walked ";
/// The directory of the crawl that this crawl replays.
pub(crate) const META_REPLAY: &str = "replay";
/// The number of the log that the search index follows. Each new log increments it.
pub(crate) const META_INDEX: &str = "index";
/// The key of the keyed digests in tombstones.
pub(crate) const META_TOMBSTONE_KEY: &str = "tombstone_key";
