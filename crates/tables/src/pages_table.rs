//! Defines the table `pages`.

use std::sync::Arc;

use crawl_archive::rows::{PageRow, PageSampleMembership, PageUsagePermissions};

use crate::language_codes::iso_639_3;
use crate::table_definition::{
    ColumnDefinition, ColumnKind, ColumnValue, RowOrder, TableDefinition, column,
};
use crate::url_parts::UrlParts;

use ColumnKind::{Bytes, Integer, Long, Short, Text, Time};

/// The data for one row of the table `pages`.
pub(crate) struct PageTableRow {
    pub(crate) row: PageRow,
    pub(crate) url: Option<UrlParts>,
    /// The length of the page's record in the archive, in bytes.
    pub(crate) record_bytes: Option<u64>,
    /// The name of the crawl, which is the name of its directory.
    pub(crate) crawl: Option<Arc<str>>,
}

/// The column with the name of the crawl.
pub(crate) const CRAWL_COLUMN: &str = "crawl";

pub(crate) const PAGES: TableDefinition<PageTableRow> = TableDefinition {
    name: "pages",
    row: "one visit to a URL (a line of `pages.jsonl`): its last exchange after any retries, \
          answered or failed",
    order: RowOrder::ByFirstColumn,
    parts: &[
        ("Columns of Common Crawl's index", COMMON_CRAWL),
        ("Our own columns", OURS),
    ],
};

const COMMON_CRAWL: &[ColumnDefinition<PageTableRow>] = &[
    column(
        "url_surtkey",
        Text,
        "SURT",
        "sort key of the URL: the labels of the host in reverse order, then the path",
        "`url`",
        |page| page.url().map(|url| &url.surt).into(),
    ),
    column(
        "url",
        Text,
        "URL",
        "the requested URL, in canonical form",
        "`url`",
        |page| ColumnValue::from(&page.row.url),
    ),
    column(
        "url_host_name",
        Text,
        "host",
        "the host name without a trailing dot, or the IP address (IPv6 in brackets)",
        "`url`",
        |page| page.url().map(UrlParts::host).into(),
    ),
    column(
        "url_host_tld",
        Text,
        "label",
        "the last label of the host; null for IP addresses, as are `url_host_2nd_last_part` to \
         `url_host_5th_last_part`",
        "`url`",
        |page| page.label_from_end(0),
    ),
    column(
        "url_host_2nd_last_part",
        Text,
        "label",
        "the second-to-last label of the host",
        "`url`",
        |page| page.label_from_end(1),
    ),
    column(
        "url_host_3rd_last_part",
        Text,
        "label",
        "the third-to-last label of the host",
        "`url`",
        |page| page.label_from_end(2),
    ),
    column(
        "url_host_4th_last_part",
        Text,
        "label",
        "the fourth-to-last label of the host",
        "`url`",
        |page| page.label_from_end(3),
    ),
    column(
        "url_host_5th_last_part",
        Text,
        "label",
        "the fifth-to-last label of the host",
        "`url`",
        |page| page.label_from_end(4),
    ),
    column(
        "url_host_registry_suffix",
        Text,
        "domain",
        "the registry's suffix, such as `co.uk`; null if the Public Suffix List has none, as are \
         the next three columns",
        "`url`",
        |page| page.url().and_then(|url| url.suffixes().registry).into(),
    ),
    column(
        "url_host_registered_domain",
        Text,
        "domain",
        "the suffix and the label before it",
        "`url`",
        |page| {
            page.url()
                .and_then(|url| url.domain_below(url.suffixes().registry))
                .into()
        },
    ),
    column(
        "url_host_private_suffix",
        Text,
        "domain",
        "the longest suffix, including suffixes of companies such as `github.io`",
        "`url`",
        |page| page.url().and_then(|url| url.suffixes().longest).into(),
    ),
    column(
        "url_host_private_domain",
        Text,
        "domain",
        "the suffix and the label before it",
        "`url`",
        |page| {
            page.url()
                .and_then(|url| url.domain_below(url.suffixes().longest))
                .into()
        },
    ),
    column(
        "url_host_name_reversed",
        Text,
        "host",
        "the labels of the host in reverse order; null for IP addresses",
        "`url`",
        |page| page.url().and_then(UrlParts::name_reversed).into(),
    ),
    column(
        "url_protocol",
        Text,
        "`http` or `https`",
        "the scheme",
        "`url`",
        |page| page.url().map(UrlParts::scheme).into(),
    ),
    column(
        "url_port",
        Integer,
        "number",
        "the port; null unless the URL contains one",
        "`url`",
        |page| page.url().and_then(UrlParts::port).into(),
    ),
    column(
        "url_path",
        Text,
        "path",
        "the path, starting with `/`",
        "`url`",
        |page| page.url().map(UrlParts::path).into(),
    ),
    column(
        "url_query",
        Text,
        "query",
        "the part after the `?`; null if there is none",
        "`url`",
        |page| page.url().and_then(UrlParts::query).into(),
    ),
    column(
        "fetch_time",
        Time,
        "UTC, ms",
        "when the request was sent",
        "`fetched_at`",
        |page| page.row.fetched_at.as_millis().into(),
    ),
    column(
        "fetch_status",
        Short,
        "number",
        "the status code; null if there was no answer",
        "`status`",
        |page| page.row.status.into(),
    ),
    column(
        "fetch_redirect",
        Text,
        "URL",
        "the target of a redirect, in canonical form",
        "`redirect`",
        |page| page.row.redirect.as_ref().into(),
    ),
    column(
        "content_digest",
        Text,
        "base 32",
        "SHA-1 of the archived payload, before its content coding is decoded",
        "`digest`",
        |page| {
            let digest = page.row.digest.as_deref();
            digest
                .and_then(|digest| digest.strip_prefix("sha1:"))
                .into()
        },
    ),
    column(
        "content_mime_type",
        Text,
        "media type",
        "the media type in `Content-Type`, without parameters, in lower case",
        "`content_type`",
        |page| page.media_type().into(),
    ),
    column(
        "content_mime_detected",
        Text,
        "media type",
        "the media type detected from the bytes of the body, regardless of `Content-Type`; null if \
         no body was read, or if the body of a media file has a content coding",
        "`detected_type`",
        |page| page.row.detected_type.as_ref().into(),
    ),
    column(
        "content_charset",
        Text,
        "charset",
        "the charset used to decode an HTML page, by its name in the Encoding Standard, such as \
         `windows-1252`",
        "`charset`",
        |page| page.row.charset.as_ref().into(),
    ),
    column(
        "content_languages",
        Text,
        "ISO 639-3",
        "the language of an HTML page, one at most; null if it is unclear, or if neither `--index` \
         nor `--language` was on",
        "`language`",
        |page| page.row.language.as_deref().and_then(iso_639_3).into(),
    ),
    column(
        "content_truncated",
        Text,
        "word",
        "`length` if the body was truncated at `--max-body`; null otherwise, even if the body is \
         incomplete or withheld (see `error`, `withheld`)",
        "`error`",
        |page| {
            (page.row.error.as_deref() == Some("body_truncated"))
                .then_some("length")
                .into()
        },
    ),
    column(
        "warc_record_id",
        Bytes,
        "UUID",
        "the 16 bytes of the record's `WARC-Record-ID`",
        "`record_id`",
        |page| {
            page.row
                .record_id
                .as_deref()
                .map_or(ColumnValue::Null, uuid)
        },
    ),
    column(
        "warc_filename",
        Text,
        "path",
        "the WARC file that contains the record, relative to the crawl's directory",
        "`warc`",
        |page| {
            let file = page
                .row
                .warc
                .as_ref()
                .map(|warc| format!("archive/{}", warc.file));
            file.into()
        },
    ),
    column(
        "warc_record_offset",
        Integer,
        "bytes",
        "the offset of the record in that file",
        "`warc`",
        |page| page.row.warc.as_ref().map(|warc| warc.offset).into(),
    ),
    column(
        "warc_record_length",
        Integer,
        "bytes",
        "the compressed length of the record",
        "`archive/captures.cdxj`",
        |page| page.record_bytes.into(),
    ),
    column(
        "warc_segment",
        Text,
        "name",
        "always null: our archives have no segments",
        "nothing",
        |_| ColumnValue::Null,
    ),
    column(
        CRAWL_COLUMN,
        Text,
        "name",
        "the name of the crawl's directory",
        "the path of the directory",
        |page| page.crawl.as_deref().into(),
    ),
    column(
        "subset",
        Text,
        "word",
        "`warc` for status 200, `crawldiagnostics` for other answers; null if there was no answer",
        "`status`",
        |page| {
            let subset = page.row.status.map(|status| match status {
                200 => "warc",
                _ => "crawldiagnostics",
            });
            subset.into()
        },
    ),
];

const OURS: &[ColumnDefinition<PageTableRow>] = &[
    column(
        "host",
        Text,
        "host key",
        "the host that the delay applies to",
        "`url`",
        |page| page.url().map(|url| &url.host_key).into(),
    ),
    column(
        "outcome",
        Text,
        "word",
        "the outcome of the request, as counted by `crawl report`: `ok`, `redirect`, `no_answer` \
         and so on",
        "`status`, `error`, `change`",
        |page| page.row.outcome().into(),
    ),
    column(
        "error",
        Text,
        "word",
        "why there was no answer, or why it could not be read",
        "`error`",
        |page| page.row.error.as_ref().into(),
    ),
    column(
        "ms",
        Long,
        "milliseconds",
        "the duration of the exchange",
        "`ms`",
        |page| page.row.ms.into(),
    ),
    column(
        "bytes",
        Long,
        "bytes",
        "the size of the body as received, before its content coding is decoded",
        "`bytes`",
        |page| page.row.bytes.into(),
    ),
    column(
        "content_type",
        Text,
        "text",
        "the `Content-Type` of the answer; of several, the last valid one",
        "`content_type`",
        |page| page.row.content_type.as_ref().into(),
    ),
    column(
        "title",
        Text,
        "text",
        "the title of an HTML page",
        "`title`",
        |page| page.row.title.as_ref().into(),
    ),
    column(
        "canonical",
        Text,
        "URL",
        "the page's canonical URL, if it differs from `url`",
        "`canonical`",
        |page| page.row.canonical.as_ref().into(),
    ),
    column(
        "depth",
        Integer,
        "links",
        "the number of links followed from a seed",
        "`depth`",
        |page| page.row.depth.into(),
    ),
    column(
        "hops_off_scope",
        Integer,
        "links",
        "the number of links followed since leaving the scope; 0 within the scope",
        "`hops_off_scope`",
        |page| u32::from(page.row.hops_off_scope).into(),
    ),
    column(
        "via",
        Text,
        "URL",
        "the URL that led to this one; null for a seed",
        "`via`",
        |page| page.row.via.as_ref().into(),
    ),
    column(
        "robots_verdict",
        Text,
        "word",
        "`allowed` or `disallowed`",
        "`robots.verdict`",
        |page| {
            page.row
                .robots
                .as_ref()
                .map(|robots| &robots.verdict)
                .into()
        },
    ),
    column(
        "robots_rule",
        Text,
        "text",
        "the robots.txt rule that matched, as written; null if none matched",
        "`robots.rule`",
        |page| {
            page.row
                .robots
                .as_ref()
                .and_then(|robots| robots.rule.as_ref())
                .into()
        },
    ),
    column(
        "robots_line",
        Integer,
        "number",
        "the line of that rule in robots.txt, counted from 1",
        "`robots.line`",
        |page| {
            page.row
                .robots
                .as_ref()
                .and_then(|robots| robots.line)
                .into()
        },
    ),
    column(
        "usage_search",
        Text,
        "word",
        "whether the site allows search indexes: `allowed`, `refused`; null if it has no statement",
        "`usage.search`",
        |page| page.usage(|usage| usage.search.as_ref()),
    ),
    column(
        "usage_ai_input",
        Text,
        "word",
        "the same for input to AI models",
        "`usage.ai-input`",
        |page| page.usage(|usage| usage.ai_input.as_ref()),
    ),
    column(
        "usage_train_ai",
        Text,
        "word",
        "the same for training AI models",
        "`usage.train-ai`",
        |page| page.usage(|usage| usage.train_ai.as_ref()),
    ),
    column(
        "usage_archive",
        Text,
        "word",
        "the same for archived copies served to others",
        "`usage.archive`",
        |page| page.usage(|usage| usage.archive.as_ref()),
    ),
    column(
        "usage_said",
        Text,
        "JSON",
        "the site's statements about usage, verbatim",
        "`usage.said`",
        |page| {
            let usage = page.row.usage.as_ref();
            usage
                .and_then(|usage| serde_json::to_string(&usage.said).ok())
                .into()
        },
    ),
    column(
        "withheld",
        Text,
        "text",
        "the site's statement that keeps the body out of the archive",
        "`withheld`",
        |page| page.row.withheld.as_ref().into(),
    ),
    column(
        "unwanted",
        Text,
        "text",
        "the filter that discarded the body, and the value it matched",
        "`unwanted`",
        |page| page.row.unwanted.as_ref().into(),
    ),
    column(
        "declared_bytes",
        Integer,
        "bytes",
        "the size of a body that is not kept, by its `Content-Length`",
        "`declared_bytes`",
        |page| page.row.declared_bytes.into(),
    ),
    column(
        "indexed",
        Text,
        "text",
        "`yes`, or why the page is not in the search index; null if there is no index",
        "`indexed`",
        |page| page.row.indexed.as_ref().into(),
    ),
    column(
        "round",
        Integer,
        "number",
        "the round, counted from 1; a URL has at most one row per round",
        "`round`",
        |page| page.row.round.into(),
    ),
    column(
        "change",
        Text,
        "word",
        "`new`, `changed`, `same` or `gone` since the last visit",
        "`change`",
        |page| page.row.change.as_ref().into(),
    ),
    column(
        "differs",
        Text,
        "word",
        "what changed since the last visit: `bytes`, `markup` or `text`",
        "`differs`",
        |page| page.row.differs.as_ref().into(),
    ),
    column(
        "sample_how",
        Text,
        "word",
        "why a page of a sample was fetched: `drawn`; `frame` (its links belong to the sampling \
         frame); `redirect`; `walk`; null without a sample",
        "`sample`",
        |page| page.sample(|sample| (&sample.how).into()),
    ),
    column(
        "sample_stratum",
        Text,
        "name",
        "the stratum from which the page was drawn",
        "`sample`",
        |page| page.sample(|sample| sample.stratum.as_ref().into()),
    ),
    column(
        "sample_drawn",
        Long,
        "pages",
        "the number of pages drawn from that stratum",
        "`sample`",
        |page| page.sample(|sample| sample.drawn.into()),
    ),
    column(
        "sample_of",
        Long,
        "pages",
        "the number of pages in the stratum; the inclusion probability is `sample_drawn / \
         sample_of`, 1 for `frame`, and unknown for `redirect` and `walk`",
        "`sample`",
        |page| page.sample(|sample| sample.of.into()),
    ),
    column(
        "seed_label",
        Text,
        "name",
        "the label of the seed whose area contains the URL; null if that seed has no label",
        "`label`",
        |page| page.row.label.as_ref().into(),
    ),
];

impl PageTableRow {
    fn url(&self) -> Option<&UrlParts> {
        self.url.as_ref()
    }

    fn label_from_end(&self, place: usize) -> ColumnValue<'_> {
        let url = self.url();
        url.and_then(|url| url.label_from_end(place)).into()
    }

    fn sample<'a>(
        &'a self,
        value: fn(&'a PageSampleMembership) -> ColumnValue<'a>,
    ) -> ColumnValue<'a> {
        self.row.sample.as_ref().map_or(ColumnValue::Null, value)
    }

    fn media_type(&self) -> Option<String> {
        let value = self.row.content_type.as_ref()?;
        let kind = value.split(';').next()?.trim().to_ascii_lowercase();
        (!kind.is_empty()).then_some(kind)
    }

    fn usage(&self, verdict: fn(&PageUsagePermissions) -> Option<&String>) -> ColumnValue<'_> {
        self.row.usage.as_ref().and_then(verdict).into()
    }
}

/// Converts a UUID of 32 hexadecimal digits to its 16 bytes. Hyphens are ignored.
fn uuid(text: &str) -> ColumnValue<'_> {
    let digits: String = text.chars().filter(|digit| *digit != '-').collect();
    match u128::from_str_radix(&digits, 16) {
        Ok(number) if digits.len() == 32 => ColumnValue::Bytes(number.to_be_bytes().to_vec()),
        _ => ColumnValue::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::uuid;
    use crate::table_definition::ColumnValue;

    #[test]
    fn the_id_of_a_record_is_its_sixteen_bytes() {
        let bytes = vec![
            0x67, 0xe5, 0x50, 0x44, 0x10, 0xb1, 0x42, 0x6f, 0x92, 0x47, 0xbb, 0x68, 0x0e, 0x5f,
            0xe0, 0xc8,
        ];
        let id = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        assert_eq!(uuid(id), ColumnValue::Bytes(bytes));
        for none in [
            "",
            "67e55044",
            "67e55044-10b1-426f-9247-bb680e5fe0cg",
            "\u{e9}",
        ] {
            assert_eq!(uuid(none), ColumnValue::Null, "{none}");
        }
    }
}
