use std::fmt::Debug;

use expect_test::{Expect, expect};
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserializer, Serialize};

use super::{
    DelayRow, ExcludedRow, ExtractRow, GatheredWorkerRow, LinkRow, PageRow, PageSampleMembership,
    PageUsagePermissions, PendingOriginRow, RandomWalkStep, ReplayOrderRow, RequestRow,
    RobotsOutcome, RobotsVerdict, RulesRecheckRow, TombstoneRow, UsageStatement,
    WarcRecordLocation,
};
use crate::Timestamp;

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(row: &T, expect: Expect) {
    let json = serde_json::to_string(row).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), row);
    expect.assert_eq(&json);
}

/// Returns the columns that the documentation lists for a row file, in order.
fn documented(file: &str) -> Vec<String> {
    let docs = include_str!("../../../../docs/rows.md");
    let (_, section) = docs.split_once(&format!("\n## {file}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let cells: Vec<_> = row.split(" | ").collect();
        assert!(
            cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()),
            "{row}"
        );
        cells[0].trim_end_matches('`').to_owned()
    })
    .collect()
}

#[test]
fn every_column_is_documented_with_its_unit() {
    let check = |file: &str, columns: &'static [&'static str]| {
        assert_eq!(documented(file), columns, "{file}");
    };
    check("pages.jsonl", columns::<PageRow>());
    check("requests.jsonl", columns::<RequestRow>());
    check("excluded.jsonl", columns::<ExcludedRow>());
    check("links.jsonl", columns::<LinkRow>());
    check("extracts.jsonl", columns::<ExtractRow>());
    check("walk.jsonl", columns::<RandomWalkStep>());
    check("waiting.jsonl", columns::<PendingOriginRow>());
    check("recheck.jsonl", columns::<RulesRecheckRow>());
    check("tombstones.jsonl", columns::<TombstoneRow>());
    check("workers.jsonl", columns::<GatheredWorkerRow>());
    check("state/delays.jsonl", columns::<DelayRow>());
    check("state/order.jsonl", columns::<ReplayOrderRow>());
}

/// Returns the names of a struct's fields in the serialised form.
fn columns<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Fields<'a>(&'a mut &'static [&'static str]);
    impl<'de> Deserializer<'de> for Fields<'_> {
        type Error = serde::de::value::Error;

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = fields;
            Err(serde::de::Error::custom("enough"))
        }

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(serde::de::Error::custom("no struct"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option
            unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
            ignored_any
        }
    }
    let mut columns: &'static [&'static str] = &[];
    assert!(T::deserialize(Fields(&mut columns)).is_err());
    columns
}

#[test]
fn face_pages() {
    check(
        &PageRow {
            url: "http://e.example/".into(),
            status: Some(200),
            fetched_at: Timestamp::from_micros(1_795_219_199_123_000),
            ms: 12,
            bytes: 3,
            content_type: Some("text/html".into()),
            detected_type: Some("application/pdf".into()),
            charset: Some("UTF-8".into()),
            language: Some("de-AT".into()),
            digest: Some("sha1:X".into()),
            depth: 1,
            hops_off_scope: 0,
            via: None,
            redirect: None,
            title: Some("\u{2028}".into()),
            canonical: None,
            indexed: None,
            robots: Some(RobotsVerdict {
                verdict: "allowed".into(),
                line: Some(3),
                rule: Some("Allow: /".into()),
            }),
            usage: Some(PageUsagePermissions {
                train_ai: Some("refused".into()),
                said: vec![UsageStatement {
                    vocabulary: "content-usage".into(),
                    channel: "robots".into(),
                    line: Some(4),
                    raw: "train-ai=n".into(),
                }],
                ..PageUsagePermissions::default()
            }),
            warc: Some(WarcRecordLocation {
                file: "crawl-e-20261120235959-00000.warc.gz".into(),
                offset: 512,
            }),
            record_id: Some("67e55044-10b1-426f-9247-bb680e5fe0c8".into()),
            withheld: None,
            unwanted: None,
            declared_bytes: None,
            echoes_secret: false,
            round: 1,
            change: Some("new".into()),
            differs: None,
            error: None,
            sample: Some(PageSampleMembership {
                how: "drawn".into(),
                stratum: Some("e.example".into()),
                drawn: Some(50),
                of: Some(200),
                probability: Some(0.25),
                unknown: None,
            }),
            label: Some("press".into()),
            render: None,
        },
        expect![[
            r#"{"url":"http://e.example/","status":200,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":3,"content_type":"text/html","detected_type":"application/pdf","charset":"UTF-8","language":"de-AT","digest":"sha1:X","depth":1,"hops_off_scope":0,"via":null,"redirect":null,"title":" ","canonical":null,"indexed":null,"robots":{"verdict":"allowed","line":3,"rule":"Allow: /"},"usage":{"search":null,"ai-input":null,"train-ai":"refused","archive":null,"said":[{"vocabulary":"content-usage","channel":"robots","line":4,"raw":"train-ai=n"}]},"warc":{"file":"crawl-e-20261120235959-00000.warc.gz","offset":512},"record_id":"67e55044-10b1-426f-9247-bb680e5fe0c8","withheld":null,"unwanted":null,"round":1,"change":"new","differs":null,"error":null,"sample":{"how":"drawn","stratum":"e.example","drawn":50,"of":200,"probability":0.25,"unknown":null},"label":"press"}"#
        ]],
    );
}

#[test]
fn face_requests() {
    check(
        &RequestRow {
            url: "http://e.example/robots.txt".into(),
            host: "e.example".into(),
            address: Some("192.0.2.1".into()),
            purpose: "robots".into(),
            start: 1_795_219_199_123,
            end: 1_795_219_199_223,
            status: None,
            failure: Some("timeout".into()),
            gap_asked: 1000,
            why: "delay".into(),
            wait_asked: None,
            after: None,
            signed: false,
            challenged: false,
            unmet_signature: None,
            method: None,
            via: None,
            robots: Some(RobotsOutcome {
                of: "http://e.example".into(),
                state: "unreachable".into(),
                why: Some("timeout".into()),
            }),
            worker: None,
        },
        expect![[
            r#"{"url":"http://e.example/robots.txt","host":"e.example","address":"192.0.2.1","purpose":"robots","start":1795219199123,"end":1795219199223,"status":null,"failure":"timeout","gap_asked":1000,"why":"delay","wait_asked":null,"after":null,"robots":{"of":"http://e.example","state":"unreachable","why":"timeout"}}"#
        ]],
    );
}

#[test]
fn face_excluded_and_links() {
    check(
        &ExcludedRow {
            url: "http://e.example/p".into(),
            reason: "robots".into(),
            rule: Some("Disallow: /p".into()),
            line: Some(2),
            found_as: None,
            found_on: Some("http://e.example/".into()),
            label: Some("press".into()),
            round: Some(2),
            at: Some(Timestamp::from_micros(1_795_219_199_123_000)),
        },
        expect![[
            r#"{"url":"http://e.example/p","reason":"robots","rule":"Disallow: /p","line":2,"found_on":"http://e.example/","label":"press","round":2,"at":"2026-11-20T23:59:59.123Z"}"#
        ]],
    );
    check(
        &LinkRow {
            from: "http://e.example/".into(),
            to: "http://e.example/p".into(),
            rel: None,
            text: Some("p".into()),
            round: Some(1),
            at: None,
        },
        expect![[
            r#"{"from":"http://e.example/","to":"http://e.example/p","rel":null,"text":"p","round":1,"at":null}"#
        ]],
    );
}
