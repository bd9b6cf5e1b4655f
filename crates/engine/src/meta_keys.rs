//! The keys under which the engine stores data besides the frontier's own tables.

/// Totals over all runs, as JSON.
pub(crate) const META_TOTALS: &str = "totals";
/// The seeds of all runs and the targets of their redirects, one per line.
pub(crate) const META_SCOPE_SEEDS: &str = "scope_seeds";
/// A line for each redirect of a seed, or of such a target: the URL, a space, the target.
pub(crate) const META_SEED_TARGETS: &str = "seed_targets";
/// Prefix of a digest: such a redirect, shared by all workers of a crawl. Keys that begin with
/// `crawl ` are stored once for all workers.
pub(crate) const META_SHARED_TARGET: &str = "crawl target ";
/// Set when any worker of a crawl fetched a seed.
pub(crate) const META_SHARED_SEED: &str = "crawl seed fetched";
/// Whether the last run was cut off.
pub(crate) const META_RUN: &str = "run";
/// The round of the crawl, as JSON.
pub(crate) const META_ROUND: &str = "round";
/// The parked hosts, as a JSON list.
pub(crate) const META_PARKED: &str = "parked";
/// The state of the trap detection.
pub(crate) const META_TRAPS: &str = "traps";
/// The draw of the sample, once it exists.
pub(crate) const META_SAMPLE: &str = crawl_sample::DRAW_KEY;
/// The design of the walk, and its seeds.
pub(crate) const META_WALK: &str = crawl_sample::WALK_KEY;
/// Prefix of a walker's number: the position of the walker.
pub(crate) const META_WALKER: &str = "walker ";
/// Prefix of a URL: the links of its page, for walkers that come there again.
pub(crate) const META_WALKED: &str = "walked ";
/// The directory of the replayed crawl.
pub(crate) const META_REPLAY: &str = "replay";
/// The number of the log that the search index follows. Each new log increments it.
pub(crate) const META_INDEX: &str = "index";
/// The key for the digests in tombstones.
pub(crate) const META_TOMBSTONE_KEY: &str = "tombstone_key";
