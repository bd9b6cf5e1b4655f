//! Copies the header fields of archived responses.

use crawl_archive::HttpMessage;

/// The header fields of a response, with lower-case names.
#[derive(Debug, Default)]
pub(crate) struct HeaderFields(Vec<(String, Vec<u8>)>);

impl HeaderFields {
    /// Copies the header fields of an archived response.
    pub(crate) fn of_message(http: &HttpMessage<'_>) -> HeaderFields {
        let fields = http.fields.iter().map(|(name, value)| {
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            (name, value.to_vec())
        });
        HeaderFields(fields.collect())
    }

    #[cfg(test)]
    pub(crate) fn of(fields: &[(&str, &str)]) -> HeaderFields {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
        HeaderFields(fields.iter().map(owned).collect())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.0.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.as_slice())
    }

    pub(crate) fn first(&self, name: &str) -> Option<&[u8]> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_slice())
    }
}
