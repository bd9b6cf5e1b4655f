//! Derives page IDs for other search engines from URLs.

use xxhash_rust::xxh3::xxh3_128;

/// Maximum length of an ID in OpenSearch and Elasticsearch, in bytes.
const MAX_ID_BYTES: usize = 512;

/// Returns the URL itself as an ID or, if the URL is empty or too long, a hash of it.
pub(super) fn url_id(url: &str) -> String {
    match url.len() {
        1..=MAX_ID_BYTES => url.to_owned(),
        _ => format!("xxh3:{}", hash_id(url)),
    }
}

/// Returns a hash of the URL as 32 hexadecimal digits, which any program accepts as a key.
pub(super) fn hash_id(url: &str) -> String {
    format!("{:032x}", xxh3_128(url.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::{hash_id, url_id};

    #[test]
    fn opensearch_ids_have_512_bytes_at_most() {
        let url = |bytes: usize| format!("http://a.example/{}", "x".repeat(bytes - 17));
        assert_eq!(url_id(&url(512)), url(512));
        let long = url_id(&url(513));
        assert_eq!(long.len(), "xxh3:".len() + 32);
        assert_ne!(long, url_id(&url(514)));
    }

    #[test]
    fn meilisearch_keys_are_letters_and_digits() {
        for url in ["", "http://a.example/ü?q=\"\u{1}", "http://a.example/"] {
            let id = hash_id(url);
            assert_eq!(id.len(), 32);
            assert!(id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
        }
    }
}
