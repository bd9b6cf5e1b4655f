//! Settings whose value is one of a few words.

use clap::ValueEnum;
use crawl_archive::WarcCompression;
use crawl_engine::{
    EmbeddedResourcePolicy, ForbiddenRobotsPolicy, OffScopeRequestMethod, RenderMode,
};
use crawl_fetcher::SignWhen;
use crawl_policy::RobotsProfile;
use crawl_policy::usage_statements::UsagePurpose;
use crawl_sample::StratumRule;
use crawl_scope::ScopeMode;
use crawl_weburl::SpellingStepPolicy;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::values::{JsonSchema, words};

/// Defines enums for keys that take one of a few words, and maps each word to a value of a library
/// crate.
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

        impl JsonSchema for $name {
            fn schema() -> Value {
                words::<$name>()
            }
        }

        impl $name {
            /// Returns the value that the word stands for.
            pub(crate) fn meaning(self) -> $meaning {
                match self {
                    $( $name::$word => $value, )+
                }
            }
        }
    )+};
}

/// Returns Zstandard if this build has it.
fn zstandard() -> Option<WarcCompression> {
    #[cfg(feature = "zstd")]
    return Some(WarcCompression::Zstd);
    #[cfg(not(feature = "zstd"))]
    None
}

words! {
    /// Which links to follow.
    ScopeName => ScopeMode {
        /// The seeds' hosts.
        Host => ScopeMode::Host;
        /// The seeds' registrable domains.
        Domain => ScopeMode::Domain;
        /// The seeds' folders and what is below them.
        Prefix => ScopeMode::Prefix;
        /// Everything.
        Any => ScopeMode::Any;
    }

    /// How to request pages at the last hop outside the scope.
    OffScopeMethodName => OffScopeRequestMethod {
        /// Fetched like other pages.
        Get => OffScopeRequestMethod::Get;
        /// Only checked.
        Head => OffScopeRequestMethod::Head;
    }

    /// How WARC files are compressed. [`WarcCompressionName::meaning`] is `None` if this build
    /// can't write the format.
    WarcCompressionName => Option<WarcCompression> {
        /// A gzip member per record.
        Gzip => Some(WarcCompression::Gzip);
        /// A Zstandard frame per record.
        Zstd => zstandard();
        /// Uncompressed records.
        None => Some(WarcCompression::Plain);
    }

    /// Which page resources to fetch.
    ResourcesName => EmbeddedResourcePolicy {
        /// None.
        Off => EmbeddedResourcePolicy::Off;
        /// Resources in the scope.
        Own => EmbeddedResourcePolicy::Own;
        /// All resources.
        All => EmbeddedResourcePolicy::All;
    }

    /// Which pages to render.
    RenderName => Option<RenderMode> {
        /// None.
        Off => None;
        /// Pages that seem to need it.
        Auto => Some(RenderMode::Auto);
        /// All.
        On => Some(RenderMode::On);
    }

    /// Which resources rendered pages may fetch. [`RenderResourcesName::meaning`] returns whether
    /// they may fetch all kinds.
    RenderResourcesName => bool {
        /// Resources that the text may depend on.
        Text => false;
        /// Images, media and fonts too.
        All => true;
    }

    /// The strata of a sample.
    StratumName => StratumRule {
        /// The whole crawl.
        Crawl => StratumRule::Crawl;
        /// Each host.
        Host => StratumRule::Host;
        /// Pages of a host at the same distance from a seed.
        Depth => StratumRule::Depth;
        /// Folders of a host.
        Path => StratumRule::Path;
    }

    /// The rules for reading robots.txt.
    ProfileName => RobotsProfile {
        /// The standard of 2022.
        Rfc9309 => RobotsProfile::Rfc9309;
        /// The original of 1994.
        Koster1994 => RobotsProfile::Koster1994;
        /// The original, with several names and paths on a line.
        Extended1997 => RobotsProfile::Extended1997;
        /// Allows only what all other profiles allow.
        Strictest => RobotsProfile::Strictest;
    }

    /// The intended use of the pages.
    PurposeName => Option<UsagePurpose> {
        /// Unstated.
        Unstated => None;
        /// A search index.
        Search => Some(UsagePurpose::Search);
        /// Input to a model when it answers.
        AiInput => Some(UsagePurpose::AiInput);
        /// Training a model.
        TrainAi => Some(UsagePurpose::TrainAi);
        /// A copy kept for others.
        Archive => Some(UsagePurpose::Archive);
    }

    /// When to sign requests.
    SignatureName => Option<SignWhen> {
        /// Never.
        Off => None;
        /// Once a host demands it.
        WhenChallenged => Some(SignWhen::Challenged);
        /// Every request.
        Always => Some(SignWhen::Always);
    }

    /// The meaning of a robots.txt that returns 401 or 403.
    ForbiddenName => ForbiddenRobotsPolicy {
        /// There are no rules.
        Allow => ForbiddenRobotsPolicy::Allow;
        /// The site is closed.
        Deny => ForbiddenRobotsPolicy::Deny;
    }

    /// When two spellings of a URL are treated as one.
    WhenName => SpellingStepPolicy {
        /// Never.
        Off => SpellingStepPolicy::Off;
        /// If pages of the host were the same under both.
        Evidence => SpellingStepPolicy::Evidence;
        /// Always.
        On => SpellingStepPolicy::On;
    }
}

/// The kind of a crawl: a general one, or a research study that must name its operator and its
/// subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CrawlKind {
    /// Any.
    General,
    /// A study, which must name its operator and its subject.
    Research,
}

/// How progress is displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProgressMode {
    /// A bar on a terminal, otherwise plain.
    Auto,
    /// One line that is updated in place.
    Bar,
    /// A line every ten seconds.
    Plain,
    /// A JSON object every second.
    Json,
    /// Nothing.
    Off,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormatChoice {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl JsonSchema for LogFormatChoice {
    fn schema() -> Value {
        words::<LogFormatChoice>()
    }
}

impl JsonSchema for ProgressMode {
    fn schema() -> Value {
        words::<ProgressMode>()
    }
}

impl JsonSchema for CrawlKind {
    fn schema() -> Value {
        words::<CrawlKind>()
    }
}
