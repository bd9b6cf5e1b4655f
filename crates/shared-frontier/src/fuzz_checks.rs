//! The body of the fuzz target for data from a database server. Checks what must hold for any data
//! that a server sends.

#![allow(clippy::unwrap_used, reason = "a check that fails should panic")]

#[cfg(test)]
#[path = "../../fuzz/src/run_without_fuzzer.rs"]
mod run_without_fuzzer;

use crawl_frontier::FingerprintKey;
use crawl_frontier::parts::{PendingUrlFields, UrlRecord};
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};
use tokio_postgres::types::{FromSql, Type};

use crate::connection_string::ConnectionString;
use crate::database_message_limits::MessageGuard;
use crate::row_codec::{
    ColumnReader, RowColumnAccess, RowKeyBuilder, flags_of, place_of, state_columns, sum, url_at,
};

/// The types of the columns of a queue place: distance, priority, redirects, flags. The sequence
/// number is a separate column.
const PLACE: [Type; 4] = [Type::INT4, Type::INT2, Type::INT2, Type::INT2];
/// The types of the columns of a record.
const RECORD: [Type; 11] = [
    Type::INT2,
    Type::INT8,
    Type::INT4,
    Type::INT4,
    Type::INT2,
    Type::INT2,
    Type::INT2,
    Type::INT2,
    Type::INT4,
    Type::TEXT,
    Type::TEXT,
];

/// Reads `data` as a row of some table, as messages of a server, or as a connection string. The
/// first byte chooses how the other bytes are read.
pub fn shared_rows(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else {
        return;
    };
    match kind % 8 {
        0 => record(bytes),
        1 => queued(bytes),
        2 => link(bytes),
        3 => visit(bytes),
        4 => totals(bytes),
        5 => foreign_links(bytes),
        6 => messages(bytes),
        _ => connection_string(bytes),
    }
}

/// A row as sent by a server: the type and the bytes of each column, with `None` for NULL.
struct FuzzedRow<'d>(Vec<(Type, Option<&'d [u8]>)>);

impl<'d> FuzzedRow<'d> {
    /// Takes the columns of a row from the front of `data`. The first byte of a column is its
    /// length. A length beyond the end of `data` makes the column NULL.
    fn take(data: &mut &'d [u8], types: &[Type]) -> FuzzedRow<'d> {
        let column = |kind: &Type| {
            let Some((length, rest)) = data.split_first() else {
                return (kind.clone(), None);
            };
            *data = rest;
            let value = rest.split_at_checked((*length).into());
            if let Some((_, rest)) = value {
                *data = rest;
            }
            (kind.clone(), value.map(|(value, _)| value))
        };
        FuzzedRow(types.iter().map(column).collect())
    }
}

impl RowColumnAccess for FuzzedRow<'_> {
    fn column<'r, T: FromSql<'r>>(&'r self, at: usize) -> Option<T> {
        let (kind, value) = self.0.get(at)?;
        let is_of_type = T::accepts(kind);
        is_of_type
            .then(|| T::from_sql_nullable(kind, *value).ok())
            .flatten()
    }
}

fn record(mut data: &[u8]) {
    let row = FuzzedRow::take(&mut data, &RECORD);
    if let Some(record) = ColumnReader::new(&row).record() {
        is_written(&row, 0, &record);
    }
}

/// Checks that the columns from `start` on are the columns that this program would write for the
/// record. A URL in the row may be spelled differently.
fn is_written(row: &FuzzedRow<'_>, start: usize, record: &UrlRecord) {
    let UrlRecord { state, place, via } = record;
    let columns = state_columns(state);
    let at = |column: usize| start + column;
    assert_eq!(row.column(at(0)), Some(columns.state));
    assert_eq!(row.column(at(1)), Some(place.seq as i64));
    if columns.state == crate::row_codec::PENDING {
        assert_eq!(row.column(at(3)), Some(columns.attempt));
        assert_eq!(record.attempt() as i32, columns.attempt);
    }
    place_is_written(row, at(2), at(4), place);
    for (column, written) in [(at(7), columns.code.map(i32::from)), (at(8), columns.line)] {
        let sent = match column == at(7) {
            true => row.column::<Option<i16>>(column).unwrap().map(i32::from),
            false => row.column::<Option<i32>>(column).unwrap(),
        };
        assert!(written.is_none() || sent == written);
    }
    via_is_written(row, at(9), via.as_ref());
    let note: Option<&str> = row.column(at(10)).unwrap();
    assert!(columns.note.is_none() || columns.note == note);
}

fn place_is_written(
    row: &FuzzedRow<'_>,
    distance: usize,
    priority: usize,
    place: &PendingUrlFields,
) {
    assert_eq!(row.column(distance), Some(place.depth as i32));
    assert_eq!(row.column(priority), Some(i16::from(place.priority)));
    assert_eq!(row.column(priority + 1), Some(i16::from(place.redirects)));
    assert_eq!(row.column(priority + 2), Some(flags_of(place)));
}

fn via_is_written(row: &FuzzedRow<'_>, at: usize, via: Option<&CanonicalUrl>) {
    let sent: Option<&str> = row.column(at).unwrap();
    let sent = sent.map(|sent| canonicalize(None, sent).unwrap());
    assert_eq!(sent.as_ref(), via);
}

/// Checks that sorting by the columns `place` and `seq` gives the same order as sorting by rank.
fn queued(mut data: &[u8]) {
    let origin = Origin::parse("http://a.example").unwrap();
    let types = [&[Type::TEXT], &RECORD[..]].concat();
    let mut entries = Vec::new();
    for _ in 0..2 {
        let row = FuzzedRow::take(&mut data, &types);
        let Some((rank, queued)) = ColumnReader::new(&row).queued(&origin) else {
            return;
        };
        assert_eq!(queued.place.rank(), rank);
        let path: &str = row.column(0).unwrap();
        assert_eq!(url_at(&origin, path).as_ref(), Some(&queued.url));
        entries.push(rank);
    }
    // Columns are signed, so larger sequence numbers than this would be negative. A crawl never has
    // such numbers.
    if entries.iter().all(|rank| rank.seq <= i64::MAX as u64) {
        let columns = (place_of(entries[0]), place_of(entries[1]));
        assert_eq!(entries[0].cmp(&entries[1]), columns.0.cmp(&columns.1));
    }
}

fn link(mut data: &[u8]) {
    let key = [Type::INT4, Type::TEXT, Type::INT8, Type::INT2];
    let rest = [Type::INT2, Type::INT4, Type::TEXT, Type::TEXT, Type::TEXT];
    let row = FuzzedRow::take(&mut data, &[&key[..], &PLACE, &rest].concat());
    let Some((key, admission)) = ColumnReader::new(&row).link() else {
        return;
    };
    assert_eq!(row.column(0), Some(key.b));
    assert_eq!(row.column::<&str>(1), Some(&*key.sender));
    let place = PendingUrlFields::of(&admission, 0);
    if admission.depth.checked_add(1).is_some() {
        place_is_written(&row, 4, 5, &place);
    }
    via_is_written(&row, 10, admission.via.as_ref());
}

fn visit(mut data: &[u8]) {
    let key = [Type::INT4, Type::INT8, Type::INT8, Type::INT8, Type::INT8];
    let rest = [
        Type::BOOL,
        Type::TEXT,
        Type::BYTEA,
        Type::INT2,
        Type::TEXT,
        Type::TEXT,
    ];
    let row = FuzzedRow::take(&mut data, &[&key[..], &PLACE, &rest].concat());
    let Some((_, stored, state)) = ColumnReader::new(&row).visit() else {
        return;
    };
    assert_eq!(row.column(3), Some(i64::from(stored.visit.at)));
    assert_eq!(row.column(4), Some(i64::from(stored.visit.due)));
    place_is_written(&row, 5, 6, &stored.place);
    assert_eq!(row.column(9), Some(stored.is_settled));
    via_is_written(&row, 10, stored.via.as_ref());
    assert_eq!(row.column(11), Some(&*stored.visit.bytes));
    assert_eq!(row.column(12), Some(state));
    let site = stored.url.site();
    let key = FingerprintKey::new([7; 16]);
    let buckets = i32::from(state).max(1);
    assert!((0..buckets).contains(&RowKeyBuilder { key, buckets }.bucket(&site)));
}

/// Checks that the totals of buckets have the same sum in any order.
fn totals(mut data: &[u8]) {
    let types = [&[Type::INT4, Type::INT8][..], &[const { Type::INT8 }; 6]].concat();
    let mut all = Vec::new();
    while !data.is_empty() {
        let row = FuzzedRow::take(&mut data, &types);
        if let Some((_, _, totals)) = ColumnReader::new(&row).bucket() {
            all.push(totals);
        }
    }
    let forwards = all.iter().copied().reduce(sum);
    let backwards = all.iter().rev().copied().reduce(sum);
    assert_eq!(forwards, backwards);
}

fn foreign_links(mut data: &[u8]) {
    let types = [
        Type::INT4,
        Type::TEXT,
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
    ];
    let row = FuzzedRow::take(&mut data, &types);
    if let Some(links) = ColumnReader::new(&row).foreign_links() {
        let bytes: usize = row
            .0
            .iter()
            .map(|(_, value)| value.map_or(0, <[u8]>::len))
            .sum();
        assert!(links.b.len() + links.sender.len() + links.number.len() <= bytes);
    }
    if let Some(reopened) = ColumnReader::new(&row).bucket_to_reopen() {
        assert_eq!(row.column(0), Some(reopened.last.b));
    }
}

/// Checks that the guard's verdict about messages does not depend on how the stream is split into
/// pieces.
fn messages(data: &[u8]) {
    let Some((piece, stream)) = data.split_first() else {
        return;
    };
    for allows_cleartext in [false, true] {
        let judge = |piece: usize| {
            let mut guard = MessageGuard::new(allows_cleartext);
            let errors = stream.chunks(piece).map(|piece| guard.check(piece));
            let errors = errors.filter_map(Result::err);
            errors.map(|why| why.to_string()).next()
        };
        assert_eq!(judge(1 + usize::from(*piece)), judge(stream.len().max(1)));
    }
}

/// Checks that no form of a connection string shows its password, and that the form without the
/// password can be parsed again.
fn connection_string(data: &[u8]) {
    const PASSWORD: &str = "kept-quiet-7";
    let text = String::from_utf8_lossy(data);
    let _ = ConnectionString::parse(&text);
    let Some((before, after)) = text.split_once('@') else {
        return;
    };
    let text = format!("postgres://{before}:{PASSWORD}@{after}");
    let Ok(parsed) = ConnectionString::parse(&text) else {
        return;
    };
    assert!(!format!("{parsed:?}").contains(PASSWORD));
    assert!(!parsed.address().contains(PASSWORD));
    let shown = parsed.without_password();
    assert!(!shown.contains(PASSWORD), "{shown}");
    let again = ConnectionString::parse(shown).unwrap();
    assert!(!again.has_password());
    assert_eq!(again.address(), parsed.address());
    assert_eq!(again.without_password(), shown);
}

#[cfg(test)]
mod tests {
    use tokio_postgres::types::Type;

    use super::run_without_fuzzer::run_without_fuzzer;
    use super::{ColumnReader, FuzzedRow, RECORD, sum};

    #[test]
    fn anything_that_a_server_sends_is_read() {
        run_without_fuzzer("shared_rows", 4_000, super::shared_rows);
    }

    /// Returns whether the columns of a pending URL can be read as a record.
    fn is_read(priority: i16, redirects: i16, flags: i16) -> bool {
        let mut data = vec![2, 0, 0, 8];
        data.extend([0; 8]);
        data.extend([4, 0, 0, 0, 3, 4, 0, 0, 0, 1]);
        for number in [priority, redirects, flags] {
            data.push(2);
            data.extend(number.to_be_bytes());
        }
        ColumnReader::new(&FuzzedRow::take(&mut &data[..], &RECORD))
            .record()
            .is_some()
    }

    #[test]
    fn columns_that_this_program_never_writes_are_refused() {
        assert!(is_read(255, 255, 3) && is_read(0, 0, 7) && is_read(5, 0, 11));
        for (priority, redirects, flags) in [
            (256, 0, 4),
            (-1, 0, 4),
            (5, 300, 4),
            (5, -1, 4),
            (5, 0, 12),
            (5, 0, 16),
            (5, 0, -1),
        ] {
            assert!(
                !is_read(priority, redirects, flags),
                "{priority} {redirects} {flags}"
            );
        }
    }

    #[test]
    fn an_array_with_fewer_elements_than_declared_is_refused() {
        let array = |claimed: i32| {
            let numbers = [1, 0, 23, claimed, 1, 4, 7];
            numbers.map(i32::to_be_bytes).concat()
        };
        for (claimed, elements) in [(1, Some(vec![7])), (2, None), (i32::MAX, None), (-1, None)] {
            let sent = array(claimed);
            let row = FuzzedRow(vec![(Type::INT4_ARRAY, Some(&sent))]);
            assert_eq!(
                ColumnReader::new(&row).array::<i32>(),
                elements,
                "{claimed}"
            );
        }
    }

    #[test]
    fn totals_of_damaged_buckets_are_added_without_overflow() {
        let totals = crawl_frontier::parts::CommittedUrlCounts {
            fetched: i64::MAX as u64,
            ..Default::default()
        };
        let all = sum(sum(totals, totals), totals);
        assert_eq!((all.fetched, all.failed), (u64::MAX, 0));
    }
}
