//! All tables together: what one source says of them, and what is in force.

use serde::{Deserialize, Serialize};

use super::sites::Sites;
use super::tables::{
    Display, DisplayLayer, Exclusion, ExclusionLayer, Fetch, FetchLayer, Names, NamesLayer,
    Operator, OperatorLayer, Output, OutputLayer, Politeness, PolitenessLayer, Recrawl,
    RecrawlLayer, Scope, ScopeLayer,
};

/// The settings of one source: each may be absent.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize)]
#[serde(default)]
pub(crate) struct Layer {
    /// Where the crawl starts: a URL or a host (may be repeated)
    ///
    /// `--seed` itself may be left out: `crawl example.org` asks `https://example.org/`, and http
    /// where no connection can be made by https; loopback names and addresses are asked over
    /// http.
    #[arg(long, value_name = "URL")]
    pub(crate) seed: Option<Vec<String>>,
    #[command(flatten)]
    pub(crate) operator: OperatorLayer,
    #[command(flatten)]
    pub(crate) scope: ScopeLayer,
    #[command(flatten)]
    pub(crate) politeness: PolitenessLayer,
    #[command(flatten)]
    pub(crate) exclusion: ExclusionLayer,
    #[command(flatten)]
    pub(crate) names: NamesLayer,
    #[command(flatten)]
    pub(crate) recrawl: RecrawlLayer,
    #[command(flatten)]
    pub(crate) fetch: FetchLayer,
    #[command(flatten)]
    pub(crate) output: OutputLayer,
    #[command(flatten)]
    pub(crate) display: DisplayLayer,
    /// Other settings for some hosts; in files alone.
    #[arg(skip)]
    pub(crate) site: Option<Sites>,
}

/// The settings in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Settings {
    /// As typed.
    pub(crate) seed: Vec<String>,
    pub(crate) operator: Operator,
    pub(crate) scope: Scope,
    pub(crate) politeness: Politeness,
    pub(crate) exclusion: Exclusion,
    pub(crate) names: Names,
    pub(crate) recrawl: Recrawl,
    pub(crate) fetch: Fetch,
    pub(crate) output: Output,
    pub(crate) display: Display,
    pub(crate) site: Sites,
}

/// The tables and the fields of each, in order.
pub(crate) const TABLES: &[(&str, &[&str])] = &[
    (OperatorLayer::TABLE, OperatorLayer::FIELDS),
    (ScopeLayer::TABLE, ScopeLayer::FIELDS),
    (PolitenessLayer::TABLE, PolitenessLayer::FIELDS),
    (ExclusionLayer::TABLE, ExclusionLayer::FIELDS),
    (NamesLayer::TABLE, NamesLayer::FIELDS),
    (RecrawlLayer::TABLE, RecrawlLayer::FIELDS),
    (FetchLayer::TABLE, FetchLayer::FIELDS),
    (OutputLayer::TABLE, OutputLayer::FIELDS),
    (DisplayLayer::TABLE, DisplayLayer::FIELDS),
];

impl Layer {
    /// This layer where it says something, else the one beneath.
    pub(crate) fn over(self, beneath: Layer) -> Layer {
        Layer {
            seed: self.seed.or(beneath.seed),
            operator: self.operator.over(beneath.operator),
            scope: self.scope.over(beneath.scope),
            politeness: self.politeness.over(beneath.politeness),
            exclusion: self.exclusion.over(beneath.exclusion),
            names: self.names.over(beneath.names),
            recrawl: self.recrawl.over(beneath.recrawl),
            fetch: self.fetch.over(beneath.fetch),
            output: self.output.over(beneath.output),
            display: self.display.over(beneath.display),
            site: self.site.or(beneath.site),
        }
    }

    /// This layer over the built-in defaults.
    pub(crate) fn settle(self) -> Settings {
        Settings {
            seed: self.seed.unwrap_or_default(),
            operator: self.operator.settle(),
            scope: self.scope.settle(),
            politeness: self.politeness.settle(),
            exclusion: self.exclusion.settle(),
            names: self.names.settle(),
            recrawl: self.recrawl.settle(),
            fetch: self.fetch.settle(),
            output: self.output.settle(),
            display: self.display.settle(),
            site: self.site.unwrap_or_default(),
        }
    }

    /// Whether this layer says something of a field of a table.
    pub(super) fn says(&self, table: &str, field: &str) -> bool {
        match table {
            OperatorLayer::TABLE => self.operator.says(field),
            ScopeLayer::TABLE => self.scope.says(field),
            PolitenessLayer::TABLE => self.politeness.says(field),
            ExclusionLayer::TABLE => self.exclusion.says(field),
            NamesLayer::TABLE => self.names.says(field),
            RecrawlLayer::TABLE => self.recrawl.says(field),
            FetchLayer::TABLE => self.fetch.says(field),
            OutputLayer::TABLE => self.output.says(field),
            DisplayLayer::TABLE => self.display.says(field),
            _ => false,
        }
    }

    /// Takes back what this layer says of a field of a table.
    pub(super) fn forget(&mut self, table: &str, field: &str) {
        match table {
            OperatorLayer::TABLE => self.operator.forget(field),
            ScopeLayer::TABLE => self.scope.forget(field),
            PolitenessLayer::TABLE => self.politeness.forget(field),
            ExclusionLayer::TABLE => self.exclusion.forget(field),
            NamesLayer::TABLE => self.names.forget(field),
            RecrawlLayer::TABLE => self.recrawl.forget(field),
            FetchLayer::TABLE => self.fetch.forget(field),
            OutputLayer::TABLE => self.output.forget(field),
            DisplayLayer::TABLE => self.display.forget(field),
            _ => {}
        }
    }

    /// Drops what the command line holds without having been typed: a count of no `-v`
    /// and an empty contact from the environment say nothing.
    pub(crate) fn typed(mut self) -> Layer {
        self.display.verbose = self.display.verbose.filter(|count| *count > 0);
        self.operator.contact = self.operator.contact.filter(|text| !text.is_empty());
        self
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Layer::default().settle()
    }
}
