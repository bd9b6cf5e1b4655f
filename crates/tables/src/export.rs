//! Writes the row files of a crawl's directory as tables.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crawl_archive::rows::{PageRow, RequestRow};
use crawl_archive::{CAPTURES, FOLDER, replace_file};
use crawl_records::{
    CrawlSettings, ExclusionsInForce, HostReport, HostReportCollector, RecordsError,
    RoundRowFilter, RoundSelection, RowFileReader,
};
use crawl_records::{excluded, links, pages, requests, waiting, walk};
use serde::de::DeserializeOwned;

use crate::csv_file_writer::CsvFileWriter;
use crate::non_page_tables::{
    EXCLUDED, HOSTS, LINKS, OriginRobotsResponse, REQUESTS, ROBOTS, WALK,
};
use crate::pages_table::{PAGES, PageTableRow};
use crate::parquet_file_writer::ParquetFileWriter;
use crate::record_length_lookup::RecordLengthLookup;
use crate::table_checksums::{ChecksumSink, ChecksumsByTable, TableChecksums};
use crate::table_definition::{RowSink, TableDefinition};
use crate::url_parts::UrlParts;

/// The file format of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Parquet with zstd compression and statistics.
    Parquet,
    /// CSV as in RFC 4180, in UTF-8, with a header.
    Csv,
}

/// The result of writing a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenTable {
    /// The name of the table, which is its file name without the extension.
    pub name: &'static str,
    /// The number of rows in the table.
    pub rows: u64,
    /// The counts of the row file that the table was written from. Zero for `hosts` and `robots`,
    /// which have no such file.
    pub read: ReadRowCounts,
}

/// What was read from a row file: the numbers of valid and invalid lines, and whether the file ends
/// within a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadRowCounts {
    /// The number of valid rows.
    pub rows: u64,
    /// The number of lines that are not valid rows.
    pub bad_lines: u64,
    /// True if the file ended within a line.
    pub is_torn: bool,
}

/// The reason why tables or a graph could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// The records could not be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The crawl has no `links.jsonl`, so there is no graph to write.
    #[error("`{}` has no links", dir.display())]
    NoLinks {
        /// The crawl's directory.
        dir: PathBuf,
    },
    /// A table could not be written.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// The path of the table's file.
        path: PathBuf,
        /// The error of the operating system or of the encoder.
        source: io::Error,
    },
}

/// Writes the tables of the crawl in `dir` into the empty folder `out`, one file per table.
/// `rounds` selects the rows of `pages`, `links` and `excluded`; the other tables always cover all
/// rounds. If the crawl is running, its current rows are exported. The tables `links` and `walk`
/// are written only if the crawl has a `links.jsonl` or `walk.jsonl`.
///
/// Memory is bounded except for about 600 bytes per host. With several rounds, 32 bytes per row of
/// `pages.jsonl` and 16 per row of `excluded.jsonl` are added.
///
/// # Errors
/// [`RecordsError::NoCrawl`] if `dir` contains no crawl, and I/O errors. Malformed lines
/// are not errors, but are counted.
pub fn export(
    dir: &Path,
    out: &Path,
    format: TableFormat,
    rounds: RoundSelection,
) -> Result<Vec<WrittenTable>, TablesError> {
    let kind = SinkKind::Files(format);
    export_to(dir, &TableDestination { out, kind }, rounds)
}

/// Computes the checksums that each table should have, from the rows of the crawl. Returns them by
/// table name.
pub(crate) fn sums_of_rows(
    dir: &Path,
    rounds: RoundSelection,
) -> Result<BTreeMap<&'static str, TableChecksums>, TablesError> {
    let sums = ChecksumsByTable::default();
    let kind = SinkKind::Sums(Rc::clone(&sums));
    let out = Path::new("");
    export_to(dir, &TableDestination { out, kind }, rounds)?;
    Ok(sums.take())
}

fn export_to(
    dir: &Path,
    destination: &TableDestination<'_>,
    rounds: RoundSelection,
) -> Result<Vec<WrittenTable>, TablesError> {
    let settings = CrawlSettings::read(dir)?;
    let view = RoundRowFilter::read(dir, rounds)?;
    let mut hosts = HostReportCollector::new(settings.in_flight.clone());
    // Read requests before pages. The requests show which pages are sitemaps.
    let requests = destination.copy(&REQUESTS, requests(dir)?, |_, row: RequestRow| {
        hosts.request(&row);
        Ok(Some(row))
    })?;
    let pages = destination.pages(dir, &mut hosts, &view)?;
    hosts.take_last_rows(dir, |_| {})?;
    each_row(waiting(dir)?, |row| {
        hosts.waiting(&row);
        Ok(())
    })?;
    for row in ExclusionsInForce::open(dir)? {
        match row {
            Ok(row) => hosts.excluded(&row),
            // Ignore malformed rows here: the copy below counts them.
            Err(RecordsError::Row { .. }) => {}
            Err(why) => return Err(why.into()),
        }
    }
    let excluded = destination.copy(&EXCLUDED, excluded(dir)?, |line, row| {
        Ok(view.holds_excluded(line, &row).then_some(row))
    })?;
    let links = match dir.join("links.jsonl").exists() {
        true => Some(destination.copy(&LINKS, links(dir)?, |_, row| {
            Ok(view.holds_link(&row).then_some(row))
        })?),
        false => None,
    };
    let walk = match dir.join("walk.jsonl").exists() {
        true => Some(destination.copy(&WALK, walk(dir)?, |_, row| Ok(Some(row)))?),
        false => None,
    };
    let hosts = hosts.finish();
    let mut written = vec![pages];
    written.extend(links);
    written.extend(walk);
    written.extend([destination.all(&HOSTS, &hosts)?, requests, excluded]);
    written.push(destination.all(&ROBOTS, &origins(&hosts))?);
    Ok(written)
}

/// The destination of tables: a folder, or only their checksums.
struct TableDestination<'a> {
    out: &'a Path,
    kind: SinkKind,
}

/// Whether to write tables as files, or only to compute their checksums.
enum SinkKind {
    Files(TableFormat),
    Sums(ChecksumsByTable),
}

/// A table that is being written.
struct OpenTable<R: 'static> {
    table: &'static TableDefinition<R>,
    path: PathBuf,
    sink: Box<dyn RowSink>,
    rows: u64,
}

impl TableDestination<'_> {
    fn begin<R>(&self, table: &'static TableDefinition<R>) -> Result<OpenTable<R>, TablesError> {
        let (path, sink) = match &self.kind {
            SinkKind::Files(format) => {
                let ending = match format {
                    TableFormat::Parquet => "parquet",
                    TableFormat::Csv => "csv",
                };
                let path = self.out.join(format!("{}.{ending}", table.name));
                let sink = replace_file(&path).and_then(|file| file_sink(*format, table, file));
                (path, sink)
            }
            SinkKind::Sums(into) => {
                let sink: Box<dyn RowSink> = Box::new(ChecksumSink {
                    table: table.name,
                    sums: TableChecksums::default(),
                    into: Rc::clone(into),
                });
                (PathBuf::from(table.name), Ok(sink))
            }
        };
        Ok(OpenTable {
            table,
            sink: sink.map_err(|source| unwritable(&path, source))?,
            path,
            rows: 0,
        })
    }

    /// Writes a table from a row file. `make` gets the line number and content of each row, and
    /// returns the table's row, or `None` to skip it.
    fn copy<T: DeserializeOwned, R>(
        &self,
        table: &'static TableDefinition<R>,
        rows: RowFileReader<T>,
        mut make: impl FnMut(u64, T) -> Result<Option<R>, TablesError>,
    ) -> Result<WrittenTable, TablesError> {
        let mut writing = self.begin(table)?;
        let read = each_line(rows, |line, row| match make(line, row)? {
            Some(row) => writing.row(&row),
            None => Ok(()),
        })?;
        Ok(WrittenTable {
            read,
            ..writing.finish()?
        })
    }

    fn all<R>(
        &self,
        table: &'static TableDefinition<R>,
        rows: &[R],
    ) -> Result<WrittenTable, TablesError> {
        let mut writing = self.begin(table)?;
        for row in rows {
            writing.row(row)?;
        }
        writing.finish()
    }

    fn pages(
        &self,
        dir: &Path,
        hosts: &mut HostReportCollector,
        view: &RoundRowFilter,
    ) -> Result<WrittenTable, TablesError> {
        let captures = dir.join(FOLDER).join(CAPTURES);
        let unreadable = |source| {
            let path = captures.clone();
            TablesError::Records(RecordsError::Io { path, source })
        };
        let mut lengths = RecordLengthLookup::open(dir).map_err(unreadable)?;
        let crawl = crawl_name(dir);
        self.copy(&PAGES, pages(dir)?, |line, row: PageRow| {
            hosts.page(&row);
            if !view.holds_page(line, &row) {
                return Ok(None);
            }
            let place = row.warc.as_ref();
            let length = place.map(|place| lengths.of(place)).transpose();
            Ok(Some(PageTableRow {
                url: UrlParts::of(&row.url),
                record_bytes: length.map_err(unreadable)?.flatten(),
                crawl: crawl.clone(),
                row,
            }))
        })
    }
}

fn file_sink<R>(
    format: TableFormat,
    table: &TableDefinition<R>,
    file: File,
) -> io::Result<Box<dyn RowSink>> {
    Ok(match format {
        TableFormat::Parquet => Box::new(ParquetFileWriter::begin(file, table)?),
        TableFormat::Csv => Box::new(CsvFileWriter::begin(file, &table.about())?),
    })
}

impl<R> OpenTable<R> {
    fn row(&mut self, row: &R) -> Result<(), TablesError> {
        self.rows += 1;
        let written = self.sink.row(&self.table.values(row));
        written.map_err(|source| unwritable(&self.path, source))
    }

    fn finish(self) -> Result<WrittenTable, TablesError> {
        let finished = self.sink.finish();
        finished.map_err(|source| unwritable(&self.path, source))?;
        Ok(WrittenTable {
            name: self.table.name,
            rows: self.rows,
            ..WrittenTable::default()
        })
    }
}

/// Calls `each` for each valid row. Malformed lines are counted and skipped.
pub(crate) fn each_row<T: DeserializeOwned>(
    rows: RowFileReader<T>,
    mut each: impl FnMut(T) -> Result<(), TablesError>,
) -> Result<ReadRowCounts, TablesError> {
    each_line(rows, |_, row| each(row))
}

/// Calls `each` like [`each_row`], but also passes the line number of each row, counted from 1.
pub(crate) fn each_line<T: DeserializeOwned>(
    mut rows: RowFileReader<T>,
    mut each: impl FnMut(u64, T) -> Result<(), TablesError>,
) -> Result<ReadRowCounts, TablesError> {
    let mut read = ReadRowCounts::default();
    while let Some(row) = rows.next() {
        match row {
            Ok(row) => {
                read.rows += 1;
                each(rows.line(), row)?;
            }
            Err(RecordsError::Row { .. }) => read.bad_lines += 1,
            Err(error) => return Err(error.into()),
        }
    }
    read.is_torn = rows.is_torn();
    Ok(read)
}

pub(crate) fn unwritable(path: &Path, source: io::Error) -> TablesError {
    let path = path.to_owned();
    TablesError::Write { path, source }
}

fn origins(hosts: &[HostReport]) -> Vec<OriginRobotsResponse> {
    let of_host = |host: &HostReport| {
        let origins = host
            .robots
            .iter()
            .map(|(origin, report)| OriginRobotsResponse {
                origin: origin.clone(),
                host: host.host.clone(),
                report: report.clone(),
            });
        origins.collect::<Vec<_>>()
    };
    hosts.iter().flat_map(of_host).collect()
}

/// Returns the name of the crawl, which is the last part of its directory's absolute path.
fn crawl_name(dir: &Path) -> Option<Arc<str>> {
    let whole = dir.canonicalize().ok()?;
    whole.file_name()?.to_str().map(Arc::from)
}
