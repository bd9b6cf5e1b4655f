//! The keys under which the engine stores data besides the frontier's own tables.

/// Totals over all runs of the crawl, as JSON.
pub(crate) const META_TOTALS: &str = "totals";
/// The seeds of all runs and the targets of their redirects, one per line.
pub(crate) const META_SCOPE_SEEDS: &str = "scope_seeds";
/// A line for each redirect of a seed, or of a target that a seed redirected to: the URL, a space,
/// the target.
pub(crate) const META_SEED_TARGETS: &str = "seed_targets";
/// Prefix of the keys under which all workers of a crawl share redirects of seeds. A digest of the
/// redirect follows. Keys that begin with `crawl ` are stored once for all workers.
pub(crate) const META_SHARED_TARGET: &str = "crawl target ";
/// Exists once any worker of a crawl has fetched a seed.
pub(crate) const META_SHARED_SEED: &str = "crawl seed fetched";
/// Whether the last run was cut off, for example by a crash, or ended properly.
pub(crate) const META_RUN: &str = "run";
/// The current round of the crawl, as JSON.
pub(crate) const META_ROUND: &str = "round";
/// The parked hosts of the crawl, as a JSON list.
pub(crate) const META_PARKED: &str = "parked";
/// The origins whose rules a recheck found changed since the last run, as a JSON list.
pub(crate) const META_RECHECKED: &str = "rechecked";
/// The state of the trap detector.
pub(crate) const META_TRAPS: &str = "traps";
/// How the crawl is sampled: by a draw or by a walk. Does not exist if no run had a sample.
pub(crate) const META_SAMPLED: &str = "sampled";
/// The draw of the sample. Does not exist before the draw.
pub(crate) const META_SAMPLE: &str = crawl_sample::DRAW_KEY;
/// The design and the seeds of the random walk.
pub(crate) const META_WALK: &str = crawl_sample::WALK_KEY;
/// Prefix of the keys for the positions of the random walk's walkers. The number of the walker
/// follows.
pub(crate) const META_WALKER: &str = "walker ";
/// Prefix of the keys for the choices of the random walk's walkers (`NextWalkerTargets`) at the URLs
/// that they have visited. The URL follows. Needed if a walker comes to the URL again.
pub(crate) const META_WALKED: &str = "walked ";
/// In a replay, the directory of the replayed crawl.
pub(crate) const META_REPLAY: &str = "replay";
/// The number of the log that the search index follows. Logs are numbered in order.
pub(crate) const META_INDEX: &str = "index";
/// Prefix of the keys for the sessions of sites: cookies and tokens. The name of the site follows.
pub(crate) const META_SESSION: &str = "session ";
/// The key with which the digests in tombstones are computed.
pub(crate) const META_TOMBSTONE_KEY: &str = "tombstone_key";
