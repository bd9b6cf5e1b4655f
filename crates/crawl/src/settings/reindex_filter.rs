//! Decides which documents a rebuilt index contains, according to the settings of its crawl.

use crawl_engine::DocumentIndexingSettings;

use super::config_file::key_of;
use super::toml_output::default_of;
use crate::values::{
    ByteSize, DocumentReadingLimits, DurationSetting, IndexedDocumentTypes, ValueParseError,
};

/// Returns which documents to index and how to read them. The document types come from `requested`,
/// or from `table` (the settings of the crawl) if `requested` is `None`.
pub(crate) fn document_rules(
    table: &toml::Table,
    requested: Option<&IndexedDocumentTypes>,
) -> Result<DocumentIndexingSettings, ValueParseError> {
    let output = table.get("output");
    let value = |field: &str| {
        let key = key_of(field);
        let value = output
            .and_then(|output| output.get(key.as_str()))
            .and_then(toml::Value::as_str);
        value
            .map(str::to_owned)
            .or_else(|| default_of(field))
            .unwrap_or_default()
    };
    let types = match requested {
        Some(types) => types.clone(),
        None => value("index_types").parse()?,
    };
    Ok(types.rules(&DocumentReadingLimits {
        timeout: value("document_timeout").parse::<DurationSetting>()?.get(),
        memory: value("document_memory").parse::<ByteSize>()?.0,
        text: value("document_text").parse::<ByteSize>()?.0,
    }))
}
