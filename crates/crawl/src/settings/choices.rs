//! Settings whose value is one of a few words.

use clap::ValueEnum;
use crawl_policy::Profile;
use serde::{Deserialize, Serialize};

/// Which links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScopeName {
    /// The hosts of the seeds.
    Host,
    /// Their registrable domains.
    Domain,
    /// Below the folders of the seeds.
    Prefix,
    /// Everything.
    Any,
}

/// Which parts of pages are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResourcesName {
    /// None.
    Off,
    /// Those in the scope.
    Own,
    /// All.
    All,
}

/// How robots.txt is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProfileName {
    /// The standard of 2022.
    Rfc9309,
    /// The original of 1994.
    Koster1994,
    /// With several names and paths on a line.
    Extended1997,
    /// All of them.
    Strictest,
}

impl ProfileName {
    /// The profile of the rules.
    pub(crate) fn profile(self) -> Profile {
        match self {
            ProfileName::Rfc9309 => Profile::Rfc9309,
            ProfileName::Koster1994 => Profile::Koster1994,
            ProfileName::Extended1997 => Profile::Extended1997,
            ProfileName::Strictest => Profile::Strictest,
        }
    }
}

/// The purpose of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PurposeName {
    /// Not said.
    Unstated,
    /// A search index.
    Search,
    /// Input to a model at the time of an answer.
    AiInput,
    /// Training a model.
    TrainAi,
    /// A copy kept for others.
    Archive,
}

/// The meaning of a robots.txt that answers 401 or 403.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ForbiddenName {
    /// There are no rules.
    Allow,
    /// The site is closed.
    Deny,
}

/// On which grounds two spellings of a URL are taken for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WhenName {
    /// Never.
    Off,
    /// Where pages of the host were the same under both.
    Evidence,
    /// Always.
    On,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProgressMode {
    /// A bar on a terminal, else plain.
    Auto,
    /// One line that moves.
    Bar,
    /// A line now and then.
    Plain,
    /// An object a second.
    Json,
    /// Nothing.
    Off,
}
