//! Decodes the body of an archived response.

use bytes::Bytes;
use crawl_archive::HttpMessage;
use crawl_coding::{DecodeEnd, DecodeLimits, decode};

use crate::header_fields::HeaderFields;

/// Returns the body of a response without its content codings, as the crawl read it. If the coded
/// body is incomplete, returns the part that can be decoded. `None` if nothing can be decoded.
#[must_use]
pub fn decoded_body(http: &HttpMessage<'_>) -> Option<Bytes> {
    whole_or_part(http).map(|(body, _)| body)
}

/// Decodes a body like [`decoded_body`], and also returns whether it could be decoded completely.
pub(crate) fn whole_or_part(http: &HttpMessage<'_>) -> Option<(Bytes, bool)> {
    without_codings(&HeaderFields::of_message(http), http.body)
}

fn without_codings(fields: &HeaderFields, body: &[u8]) -> Option<(Bytes, bool)> {
    let body = Bytes::copy_from_slice(body);
    let codings = fields.all("content-encoding");
    let decoded = decode(codings, &body, &DecodeLimits::default());
    let is_readable = match decoded.end {
        DecodeEnd::Whole | DecodeEnd::Truncated { .. } => true,
        DecodeEnd::Short | DecodeEnd::Broken { .. } => !decoded.bytes.is_empty(),
        DecodeEnd::UnknownCoding { .. } => false,
    };
    let is_whole = matches!(decoded.end, DecodeEnd::Whole);
    is_readable.then_some((decoded.bytes, is_whole))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use bytes::Bytes;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::without_codings;
    use crate::header_fields::HeaderFields;

    #[test]
    fn of_a_page_whose_coding_breaks_off_that_is_read_which_the_crawl_read() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(b"<a href=/gone>").unwrap();
        let mut gzip = gzip.finish().unwrap();
        let sum = gzip.len() - 6;
        gzip[sum] ^= 1;
        let fields = HeaderFields::of(&[("content-encoding", "gzip")]);
        let part = (Bytes::from("<a href=/gone>"), false);
        assert_eq!(without_codings(&fields, &gzip), Some(part));
        let whole = (Bytes::from("<p>"), true);
        assert_eq!(without_codings(&HeaderFields::of(&[]), b"<p>"), Some(whole));
        assert_eq!(without_codings(&fields, b"<p>"), None);
        let unknown = HeaderFields::of(&[("content-encoding", "compress")]);
        assert_eq!(without_codings(&unknown, b"<p>"), None);
    }
}
