//! The files that a crawl writes: WARC 1.1 files, their CDXJ index and the row files.
//!
//! A [`CaptureEncoder`] turns a [`Capture`] (one exchange with a server) into finished, compressed
//! records. This does no I/O, so any thread can do it. An [`ArchiveWriter`] owns the files in a
//! crawl's `archive/` folder: it appends records, begins new files, syncs them, and reports their
//! lengths. The caller commits these lengths in a transaction. On open, files are truncated to the
//! committed lengths, so that no record is torn or listed twice. [`RowFileWriter`] and
//! [`RowLogWriter`] do the same for JSON lines, [`rows`] defines the rows, and [`WarcReader`] reads
//! records back.
//!
//! The crate never reads HTML, does no network I/O, reads no clock and generates ids only on
//! request ([`RecordIds::random`]). Dates and ids are arguments, so that the same captures always
//! give the same bytes.
//!
//! ```
//! use crawl_archive::{ArchiveOptions, ArchiveWriter, Capture, CaptureEncoder, CaptureMetadata};
//! use crawl_archive::{RecordIds, CapturedRequest, Timestamp, WarcReader};
//!
//! let dir = tempfile::tempdir()?;
//! let mut archive = ArchiveWriter::open(dir.path(), ArchiveOptions::default(), &Default::default())?;
//! let url = crawl_weburl::canonicalize(None, "http://example.org/")?;
//! let mut headers = http::HeaderMap::new();
//! headers.insert("content-type", "text/html".parse()?);
//! let capture = Capture {
//!     url: &url,
//!     started: Timestamp::from_micros(1_795_000_000_000_000),
//!     millis: 42,
//!     address: None,
//!     protocol: http::Version::HTTP_11,
//!     tls: None,
//!     request: CapturedRequest { method: "GET", headers: &[], body: &[] },
//!     status: 200,
//!     reason: None,
//!     headers: &headers,
//!     body: b"<p>hello",
//!     truncated: None,
//!     revisit: None,
//!     about: CaptureMetadata::default(),
//! };
//! let encoded = CaptureEncoder::default().encode(&capture, &RecordIds::random());
//! let receipt = archive.append(&encoded)?;
//! archive.sync()?;
//!
//! let file = dir.path().join("archive").join(&receipt.file);
//! let kinds: Vec<String> = WarcReader::open(&file)?
//!     .map(|record| record.map(|record| record.kind().to_owned()))
//!     .collect::<Result<_, _>>()?;
//! assert_eq!(kinds, ["warcinfo", "response", "request", "metadata"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Only Linux is supported. Check it here, because all crates that use a crawl's directory depend on
// this one.
#[cfg(not(target_os = "linux"))]
compile_error!(
    "crawl runs on Linux only: its crawls lock hosts against each other by open file description \
     locks (F_OFD_SETLK), and it opens files without following links and listens on Unix domain \
     sockets; elsewhere, run it in a Linux container (docs/container.md)"
);

mod appender;
mod archive_layout;
mod archive_record_removal;
mod archive_writer;
mod atomic_file;
mod bounded_read;
mod capture;
mod capture_log_reader;
mod capture_search;
mod cdxj;
mod cdxj_index_rebuild;
mod digest;
mod digest_refresh_after_open;
mod directory_safety;
mod disk_interface;
mod error;
mod file_digest_list;
#[cfg(any(test, fuzzing))]
pub mod fuzz_checks;
mod gzip_compressor;
mod http_head_writer;
mod line_sorter;
mod regular_file;
mod renamed_warc_copy;
mod row_files;
mod row_removal;
pub mod rows;
mod serialized_page_row;
mod serialized_request_row;
mod surt;
mod timestamp;
mod url_file_paths;
mod warc_compression;
mod warc_reader;
mod warc_record_encoder;
#[cfg_attr(not(feature = "zstd"), path = "zstd_frame_disabled.rs")]
mod zstd_frame;

pub use archive_layout::{CAPTURES, FOLDER, INDEX};
pub use archive_record_removal::{RewrittenArchive, rewrite_archive};
pub use archive_writer::{ArchiveOptions, ArchiveWriter, CaptureLocation, marks_at_rest};
pub use atomic_file::{
    AtomicFile, AtomicFileError, AtomicFolder, end_of_links, is_behind_dangling_link,
};
pub use bounded_read::{
    BadLineReason, BoundedLineResult, LineReader, MAX_CONFIG_BYTES, MAX_LINE_BYTES, read_text,
};
pub use capture::{
    Capture, CaptureMetadata, CapturedRequest, RecordIds, RevisitOriginal, RevisitProfile,
    TlsVersion, WarcTruncation,
};
pub use capture_log_reader::{CaptureLine, CaptureLogReader};
pub use capture_search::find_response;
pub use cdxj::index_line;
pub use cdxj_index_rebuild::write_index;
pub use digest::DigestAlgorithm;
pub use digest_refresh_after_open::DigestRefreshAfterOpen;
pub use directory_safety::{
    FORGET_LIST, FORGET_LIST_BESIDE, FORGET_STAGING, check_entries, is_of_archive,
};
pub use disk_interface::{Disk, DiskFaultInjector};
pub use error::{ArchiveWriteError, ReadError};
pub use file_digest_list::{
    DIGESTS, FileDigestList, FilesToRehash, TEMPORARY_DIGESTS, digested_files,
    keep_archive_digests, sha256_of, start_digests, write_archive_digests, write_digests,
};
pub use line_sorter::LineSorter;
pub use regular_file::{open_for_writing, open_regular, replace_file};
pub use renamed_warc_copy::{CopiedWarc, copy_renamed, is_warc, marked_name};
pub use row_files::{LastLogRows, LogSyncer, RowFileWriter, RowLogWriter, RowReader};
pub use row_removal::{RemovalSelection, RowRewriteCounts, RowRewriteDecision, rewrite_rows};
pub use serialized_page_row::SerializedPageRow;
pub use serialized_request_row::SerializedRequestRow;
pub use surt::surt;
pub use timestamp::Timestamp;
pub use url_file_paths::{
    MAX_FILE_NAME_BYTES, UrlFilePathAssigner, decoded_url_part, relative_path, safe_file_name,
};
pub use warc_compression::{WarcCompression, ZSTD_MAGIC, strip_warc_suffix};
pub use warc_reader::{
    HttpMessage, MAX_BLOCK_BYTES, MAX_BODY_BYTES, WarcReader, WarcRecord, archive_file, dom_at,
    head_fields_at, read_dom, read_place, read_record,
};
pub use warc_record_encoder::{CaptureEncoder, EncodedCapture, Warcinfo};
