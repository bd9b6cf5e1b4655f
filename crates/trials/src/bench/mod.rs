//! Benchmarks that take too long or too much disk for tests, or measure what tests can't.

mod cost_breakdown;
mod crawl;
mod field_extraction;
mod frontier;
mod hostile_servers;
mod index_long_pages;
mod measured_program;
mod record_reading_cost;
mod render;
mod search;
mod slow_name_server;

use anyhow::Result;
use clap::Subcommand;

use xtask::workspace::Workspace;

/// The gzip level that web servers typically use.
const SERVER_LEVEL: u32 = 6;

#[derive(Subcommand)]
pub(crate) enum BenchmarkCommand {
    /// Crawl a site of documentation with this program and others; prints a table
    Crawl(crawl::CrawlArgs),
    /// Extract fields from pages again with this program and with Scrapy's HTTP cache; prints a
    /// table
    Extract(field_extraction::ExtractArgs),
    /// Only fetch URLs: the baseline of `bench crawl`
    #[command(hide = true)]
    Floor(crawl::MinimumCostArgs),
    /// Fill a frontier on disk as a crawl does; prints a table row
    Frontier(frontier::FrontierArgs),
    /// Fill frontiers in a PostgreSQL with 1, 2 and 4 workers, beside one on disk; prints a table
    Shared,
    /// Crawl growing numbers of generated pages; prints the cost of a page
    Growth(crawl::PageGrowthArgs),
    /// Crawl many slow hosts with this program and wget2; prints a table
    Hosts(crawl::ManyHostsArgs),
    /// Crawl hosts that misbehave; prints the crawler's peak memory
    Hostile(hostile_servers::HostileArgs),
    /// Crawl and index long pages; prints the crawler's peak memory
    LongPages(index_long_pages::LongPagesArgs),
    /// Crawl many hosts through a failing and a healthy name server; prints a table
    Names(slow_name_server::SlowNamesArgs),
    /// Time each part of a crawl's work on real pages; prints a table
    Parts(cost_breakdown::CostBreakdownArgs),
    /// Crawl many hosts politely, for a bounded time, with this program and wget2; prints a table
    Polite(crawl::PoliteCrawlArgs),
    /// Generate the records of a large crawl; prints the cost of its report and tables
    Records(record_reading_cost::RecordReadingCostArgs),
    /// Crawl pages that scripts build, and render them with Playwright; prints a table
    Render(render::RenderArgs),
    /// Search documentation with judged queries; prints quality and speed of the results
    Search(search::SearchArgs),
    /// Crawl many hosts over TLS with this program, wget2 and a bare loop; prints a table
    Tls(crawl::TlsArgs),
    /// Only fetch URLs over TLS: the baseline of `bench tls`
    #[command(hide = true)]
    TlsFloor(crawl::TlsMinimumCostArgs),
}

/// Runs a benchmark. The bare loops (`floor`, `tls-floor`) are measured as whole processes. So they
/// don't look for the workspace, because this would start Cargo, whose time would count.
pub(crate) fn bench(bench: &BenchmarkCommand) -> Result<()> {
    let workspace = Workspace::find;
    match bench {
        BenchmarkCommand::Crawl(args) => crawl::crawl(&workspace()?, args),
        BenchmarkCommand::Extract(args) => field_extraction::measure(&workspace()?, args),
        BenchmarkCommand::Floor(args) => crawl::fetch_all(args),
        BenchmarkCommand::Frontier(args) => frontier::fill(&workspace()?, args),
        BenchmarkCommand::Shared => frontier::share(&workspace()?),
        BenchmarkCommand::Growth(args) => crawl::growth(&workspace()?, args),
        BenchmarkCommand::Hosts(args) => crawl::hosts(&workspace()?, args),
        BenchmarkCommand::Hostile(args) => hostile_servers::crawl(&workspace()?, args),
        BenchmarkCommand::LongPages(args) => index_long_pages::crawl(&workspace()?, args),
        BenchmarkCommand::Names(args) => slow_name_server::measure(&workspace()?, args),
        BenchmarkCommand::Parts(args) => cost_breakdown::parts(&workspace()?, args),
        BenchmarkCommand::Polite(args) => crawl::polite(&workspace()?, args),
        BenchmarkCommand::Records(args) => record_reading_cost::measure(&workspace()?, args),
        BenchmarkCommand::Render(args) => render::measure(&workspace()?, args),
        BenchmarkCommand::Search(args) => search::measure(&workspace()?, args),
        BenchmarkCommand::Tls(args) => crawl::tls(&workspace()?, args),
        BenchmarkCommand::TlsFloor(args) => crawl::fetch_all_over_tls(args),
    }
}
