//! Parses `--filter FACET=VALUE` of `crawl search`.

use std::str::FromStr;

#[cfg(feature = "search")]
use crawl_index::FacetFilters;

/// A facet and the value that pages must have for it, such as `language=en`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchFilter {
    facet: FacetName,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FacetName {
    Folder,
    Version,
    Language,
    Type,
}

impl FromStr for SearchFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<SearchFilter, String> {
        let (facet, value) = text.split_once('=').unwrap_or((text, ""));
        let facet = match facet {
            "folder" => FacetName::Folder,
            "version" => FacetName::Version,
            "language" => FacetName::Language,
            "type" => FacetName::Type,
            _ => return Err("valid facets: folder, version, language, type".to_owned()),
        };
        match value.trim() {
            "" => Err("a filter looks like language=en".to_owned()),
            value => Ok(SearchFilter {
                facet,
                value: value.to_owned(),
            }),
        }
    }
}

/// Combines filters; if a facet occurs twice, the last value wins.
#[cfg(feature = "search")]
pub(crate) fn all_filters(filters: &[SearchFilter]) -> FacetFilters {
    let mut all = FacetFilters::default();
    for filter in filters {
        let value = match filter.facet {
            FacetName::Folder => &mut all.folder,
            FacetName::Version => &mut all.version,
            FacetName::Language => &mut all.language,
            FacetName::Type => &mut all.document_type,
        };
        *value = Some(filter.value.clone());
    }
    all
}

#[cfg(feature = "search")]
#[cfg(test)]
mod tests {
    use super::{SearchFilter, all_filters};

    #[test]
    fn a_filter_is_a_facet_and_a_value() {
        let read = |text: &str| text.parse::<SearchFilter>();
        for wrong in ["", "language", "language=", "host=a", "=a"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let filters = [
            "language=de",
            "type=pdf",
            "language=en",
            "folder=a.example/b=c",
        ];
        let all = all_filters(&filters.map(|text| read(text).unwrap()));
        assert_eq!(all.language.as_deref(), Some("en"));
        assert_eq!(all.document_type.as_deref(), Some("pdf"));
        assert_eq!(all.folder.as_deref(), Some("a.example/b=c"));
        assert_eq!(all.version, None);
    }
}
