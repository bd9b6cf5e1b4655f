//! The names under which the engine keeps what it knows beside the frontier's own tables.

/// Sums over all runs, as JSON.
pub(crate) const META_TOTALS: &str = "totals";
/// The seeds of all runs and the targets of their redirects, a line each.
pub(crate) const META_SCOPE_SEEDS: &str = "scope_seeds";
/// A line for each redirect of a seed, or of such a target: the URL, a space, its target.
pub(crate) const META_SEED_TARGETS: &str = "seed_targets";
/// Before a digest: such a redirect, for all workers of a crawl. What begins with `crawl ` is kept
/// once for all of them.
pub(crate) const META_SHARED_TARGET: &str = "crawl target ";
/// Some worker of a crawl fetched a seed.
pub(crate) const META_SHARED_SEED: &str = "crawl seed fetched";
/// The end of the last run: by itself, or not.
pub(crate) const META_RUN: &str = "run";
/// The crawl's round, as JSON.
pub(crate) const META_ROUND: &str = "round";
/// The parked hosts, as a JSON list.
pub(crate) const META_PARKED: &str = "parked";
/// Which kinds of URLs are put aside as traps.
pub(crate) const META_TRAPS: &str = "traps";
/// The draw of the sample, once it was made.
pub(crate) const META_SAMPLE: &str = crawl_sample::DRAW_KEY;
/// The design of the walk and the seeds that it starts from.
pub(crate) const META_WALK: &str = crawl_sample::WALK_KEY;
/// Before the number of a walker: where it stands.
pub(crate) const META_WALKER: &str = "walker ";
/// Before a URL: the links of its page, by which a walker goes on that comes there again.
pub(crate) const META_WALKED: &str = "walked ";
/// The directory of the crawl whose replay this is.
pub(crate) const META_REPLAY: &str = "replay";
/// Which log the search index follows: grows by one each time that it is begun anew.
pub(crate) const META_INDEX: &str = "index";
/// The key of the digests of tombstones.
pub(crate) const META_TOMBSTONE_KEY: &str = "tombstone_key";
