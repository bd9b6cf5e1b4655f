//! Settings whose value is one of a few words.

use clap::ValueEnum;
use crawl_engine::{Forbidden, Resources};
use crawl_policy::Profile;
use crawl_policy::usage::UsagePurpose;
use crawl_sample::StratumRule;
use crawl_scope::ScopeMode;
use crawl_weburl::StepPolicy;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::values::{SchemaValue, words};

/// Defines the words that a key takes, and what each stands for in the libraries.
macro_rules! words {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident => $meaning:ty {
            $( $(#[doc = $word_doc:literal])+ $word:ident => $value:expr; )+
        }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub(crate) enum $name {
            $( $(#[doc = $word_doc])+ $word, )+
        }

        impl SchemaValue for $name {
            fn schema() -> Value {
                words::<$name>()
            }
        }

        impl $name {
            /// The value that the word stands for.
            pub(crate) fn meaning(self) -> $meaning {
                match self {
                    $( $name::$word => $value, )+
                }
            }
        }
    )+};
}

words! {
    /// Which links are followed.
    ScopeName => ScopeMode {
        /// The hosts of the seeds.
        Host => ScopeMode::Host;
        /// Their registrable domains.
        Domain => ScopeMode::Domain;
        /// Below the folders of the seeds.
        Prefix => ScopeMode::Prefix;
        /// Everything.
        Any => ScopeMode::Any;
    }

    /// Which parts of pages are fetched.
    ResourcesName => Resources {
        /// None.
        Off => Resources::Off;
        /// Those in the scope.
        Own => Resources::Own;
        /// All.
        All => Resources::All;
    }

    /// The strata of a sample.
    StratumName => StratumRule {
        /// The whole crawl.
        Crawl => StratumRule::Crawl;
        /// Each host.
        Host => StratumRule::Host;
        /// Pages of a host equally far from a seed.
        Depth => StratumRule::Depth;
        /// Folders of a host.
        Path => StratumRule::Path;
    }

    /// The rules by which robots.txt is read.
    ProfileName => Profile {
        /// The standard of 2022.
        Rfc9309 => Profile::Rfc9309;
        /// The original of 1994.
        Koster1994 => Profile::Koster1994;
        /// With several names and paths on a line.
        Extended1997 => Profile::Extended1997;
        /// All of them.
        Strictest => Profile::Strictest;
    }

    /// The purpose of the pages.
    PurposeName => Option<UsagePurpose> {
        /// Not said.
        Unstated => None;
        /// A search index.
        Search => Some(UsagePurpose::Search);
        /// Input to a model at the time of an answer.
        AiInput => Some(UsagePurpose::AiInput);
        /// Training a model.
        TrainAi => Some(UsagePurpose::TrainAi);
        /// A copy kept for others.
        Archive => Some(UsagePurpose::Archive);
    }

    /// The meaning of a robots.txt that answers 401 or 403.
    ForbiddenName => Forbidden {
        /// There are no rules.
        Allow => Forbidden::Allow;
        /// The site is closed.
        Deny => Forbidden::Deny;
    }

    /// On which grounds two spellings of a URL are taken for one.
    WhenName => StepPolicy {
        /// Never.
        Off => StepPolicy::Off;
        /// Where pages of the host were the same under both.
        Evidence => StepPolicy::Evidence;
        /// Always.
        On => StepPolicy::On;
    }
}

/// The kind of a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KindName {
    /// Any.
    General,
    /// A study, which says whose it is and what it is about.
    Research,
}

/// The form in which progress is shown.
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

/// The format of the lines of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormatName {
    /// For a person.
    Text,
    /// An object on each line.
    Json,
}

impl SchemaValue for LogFormatName {
    fn schema() -> Value {
        words::<LogFormatName>()
    }
}

impl SchemaValue for ProgressMode {
    fn schema() -> Value {
        words::<ProgressMode>()
    }
}

impl SchemaValue for KindName {
    fn schema() -> Value {
        words::<KindName>()
    }
}
