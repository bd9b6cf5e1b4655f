//! The defaults of `crawl check` that differ from those of a crawl, and checks of the directory in
//! which a link check continues.

use std::path::Path;

use crawl_records::stored_settings;
use toml::Table;

use super::choices::{OffScopeMethodName, ResourcesName};
use super::setting_definitions::{ScopeLayer, SettingsLayer};
use crate::error::CommandError;
use crate::values::FilePath;

/// Media types that may contain links, so `crawl check` fetches their bodies. For other types, the
/// status is enough to check a link.
const TYPES_WITH_LINKS: [&str; 7] = [
    "text/*",
    "application/xhtml+xml",
    "application/xml",
    "application/rss+xml",
    "application/atom+xml",
    "application/feed+json",
    "application/json",
];

/// Returns the defaults of `crawl check` that differ from those of a crawl.
pub(crate) fn check_defaults() -> SettingsLayer {
    let types = TYPES_WITH_LINKS.iter().map(|range| range.parse());
    SettingsLayer {
        scope: ScopeLayer {
            hops_off_scope: Some(1),
            off_scope_method: Some(OffScopeMethodName::Head),
            resources: Some(ResourcesName::All),
            content_type: Some(types.filter_map(Result::ok).collect()),
            ..ScopeLayer::default()
        },
        ..SettingsLayer::default()
    }
}

/// Rejects the directory of a crawl that didn't follow links to other sites. `crawl check` could
/// not check these links there, because their URLs are already settled as out of scope.
pub(crate) fn refuse_plain_crawl(layer: &SettingsLayer) -> Result<(), CommandError> {
    let Some(output) = &layer.output.output else {
        return Ok(());
    };
    match is_plain_crawl(&stored_settings(&output.0)) {
        true => Err(CommandError::usage(format!(
            "the crawl in {} doesn't follow links to other sites, so a check can't continue it",
            output.0.display()
        ))
        .hint(
            "check in a new directory with another --output, or list this crawl's own faults with \
             `crawl report DIR --faults`",
        )),
        false => Ok(()),
    }
}

/// Returns whether a crawl.toml belongs to a crawl that stays in its scope.
fn is_plain_crawl(stored: &Table) -> bool {
    let scope = stored.get("scope").and_then(|scope| scope.as_table());
    let hops = scope.and_then(|scope| scope.get("hops-off-scope")?.as_integer());
    !stored.is_empty() && hops.unwrap_or_default() == 0
}

impl SettingsLayer {
    /// Returns whether this layer names a directory for the crawl.
    pub(crate) fn names_output(&self) -> bool {
        let output = self.output.output.as_ref();
        output.is_some_and(|dir| !dir.is_empty())
    }

    /// Returns whether this layer names seeds or lists of seeds.
    pub(crate) fn names_seeds(&self) -> bool {
        self.seed.is_some() || self.seed_file.is_some() || self.seed_sitemap.is_some()
    }

    /// Sets the directory for the crawl.
    pub(crate) fn put_into(&mut self, dir: &Path) {
        self.output.output = Some(FilePath(dir.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::{TYPES_WITH_LINKS, check_defaults, is_plain_crawl};

    #[test]
    fn each_type_is_a_media_type() {
        let types = check_defaults().scope.content_type.unwrap();
        assert_eq!(types.len(), TYPES_WITH_LINKS.len());
    }

    #[test]
    fn a_crawl_that_stays_in_scope_is_recognized() {
        for (stored, is_plain) in [
            ("", false),
            ("[scope]\nscope = \"host\"", true),
            ("scope.hops-off-scope = 0", true),
            ("scope.hops-off-scope = 1", false),
        ] {
            assert_eq!(
                is_plain_crawl(&stored.parse().unwrap()),
                is_plain,
                "{stored}"
            );
        }
    }
}
