//! Decodes the body of an archived response.

use bytes::Bytes;
use crawl_archive::HttpMessage;
use crawl_coding::{DecodeEnd, DecodeLimits, decode};

use crate::header_fields::Fields;

/// Returns the body of a response without its content codings, as the crawl read it. If the coded
/// body is incomplete, returns the part that can be decoded. `None` if nothing can be decoded.
#[must_use]
pub fn decoded_body(http: &HttpMessage<'_>) -> Option<Bytes> {
    without_codings(&Fields::of_message(http), http.body)
}

fn without_codings(fields: &Fields, body: &[u8]) -> Option<Bytes> {
    let body = Bytes::copy_from_slice(body);
    let codings = fields.all("content-encoding");
    let decoded = decode(codings, &body, &DecodeLimits::default());
    let is_readable = match decoded.end {
        DecodeEnd::Whole | DecodeEnd::Truncated { .. } => true,
        DecodeEnd::Short | DecodeEnd::Broken { .. } => !decoded.bytes.is_empty(),
        DecodeEnd::UnknownCoding { .. } => false,
    };
    is_readable.then_some(decoded.bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::without_codings;
    use crate::header_fields::Fields;

    #[test]
    fn of_a_page_whose_coding_breaks_off_that_is_read_which_the_crawl_read() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(b"<a href=/gone>").unwrap();
        let mut gzip = gzip.finish().unwrap();
        let sum = gzip.len() - 6;
        gzip[sum] ^= 1;
        let fields = Fields::of(&[("content-encoding", "gzip")]);
        assert_eq!(without_codings(&fields, &gzip).unwrap(), "<a href=/gone>");
        assert_eq!(without_codings(&fields, b"<p>"), None);
        let unknown = Fields::of(&[("content-encoding", "compress")]);
        assert_eq!(without_codings(&unknown, b"<p>"), None);
    }
}
