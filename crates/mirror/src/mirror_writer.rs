//! Writes the files of a mirror.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use crawl_archive::{AtomicFolder, relative_path};
use crawl_extractor::{ContentKind, document_kind, rewrite_css, rewrite_html};
use crawl_records::{
    ArchivedPageBody, CurrentRow, CurrentRowSelector, PageRow, read_as_sent, seeds_of,
    stored_settings,
};
use crawl_weburl::{CanonicalUrl, canonicalize};
use serde::{Deserialize, Serialize};

use crate::error::MirrorError;
use crate::mirror_file_map::{LeftOutCounts, MirrorFileMap};

/// The file that marks a folder as a mirror. No page's file can have this name, because
/// [`crawl_archive::safe_file_name`] never returns a hidden name.
const MARK: &str = ".crawl-mirror.json";
/// The version of the mirror's layout, written to [`MARK`].
const FORMAT: u32 = 1;

/// The content of [`MARK`].
#[derive(Serialize, Deserialize)]
struct MarkerFile {
    format: u32,
    files: u64,
}

/// The result of writing a mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirrorReport {
    /// Number of files with HTML pages.
    pub pages: u64,
    /// Number of other files: style sheets, images, documents.
    pub resources: u64,
    /// Total size of the files in bytes.
    pub bytes: u64,
    /// The path of the file to open first, relative to the folder: the file of the first seed that
    /// has a file, or else of the first page. `None` if the mirror contains no page.
    pub start: Option<String>,
    /// Number of files that contain only a part of the body, because the server didn't send the
    /// rest or because the body exceeded a limit of the crawl.
    pub truncated: u64,
    /// Number of pages left out because their site forbids copies, for example by `noarchive` or
    /// `Content-Usage`.
    pub withheld: u64,
    /// Number of pages left out because the operator's content filter rejected them.
    pub unwanted: u64,
    /// Number of pages left out because the body contains a secret of the operator's configuration.
    pub secret: u64,
    /// Number of pages left out because the archive contains no body.
    pub without_body: u64,
    /// Number of pages left out because the row has no usable URL, or because the record in the
    /// archive can't be read.
    pub unreadable: u64,
}

/// Writes the crawl in `dir` as files into the folder `out`, which must be new, empty, or an
/// earlier mirror. The folder appears only once it is complete. Holds in memory the URL and path of
/// each file, and one body at a time.
///
/// # Errors
/// [`MirrorError::NoFiles`] if there is nothing to write, [`MirrorError::Folder`] if `out` exists
/// and is neither empty nor a mirror, and I/O errors. A record that can't be read isn't an error,
/// but is counted in [`MirrorReport::unreadable`].
pub fn mirror(dir: &Path, out: &Path) -> Result<MirrorReport, MirrorError> {
    let current = CurrentRowSelector::open(dir)?;
    let (mut files, left_out) = MirrorFileMap::read(dir, &current)?;
    let folder = AtomicFolder::create(out, is_mirror)?;
    let mut unreadable = left_out.unreadable;
    let mut report = loop {
        let mut writer = MirrorWriter {
            dir,
            folder: folder.beside(),
            files: &files,
            report: MirrorReport::default(),
            failed: Vec::new(),
        };
        current.each(|row| match row {
            CurrentRow::Page { row, .. } => writer.page(&row),
            CurrentRow::Redirect(_) => Ok(()),
        })?;
        let MirrorWriter { report, failed, .. } = writer;
        if failed.is_empty() {
            break report;
        }
        // Other files may already refer to pages that turned out to be unreadable. So write all
        // files again without these references. This is rare, because it requires a damaged
        // archive.
        unreadable += failed.len() as u64;
        for url in failed {
            files.remove(&url);
        }
    };
    if report.pages + report.resources == 0 {
        let dir = dir.to_owned();
        return Err(MirrorError::NoFiles { dir });
    }
    let seeds = stored_settings(dir);
    let start = seeds_of(&seeds).find_map(|seed| {
        let seed = canonicalize(None, seed).ok()?;
        files.of_link(&seed).map(|file| file.path.to_owned())
    });
    write_mark(folder.beside(), report.pages + report.resources)?;
    folder.finish()?;
    let LeftOutCounts {
        withheld,
        unwanted,
        secret,
        without_body,
        ..
    } = left_out;
    report.start = start.or(report.start);
    Ok(MirrorReport {
        withheld,
        unwanted,
        secret,
        without_body,
        unreadable,
        ..report
    })
}

/// Returns whether a folder is a mirror.
fn is_mirror(folder: &Path) -> bool {
    let mark = fs::read(folder.join(MARK)).unwrap_or_default();
    serde_json::from_slice::<MarkerFile>(&mark).is_ok()
}

fn write_mark(folder: &Path, files: u64) -> Result<(), MirrorError> {
    let path = folder.join(MARK);
    let mark = serde_json::json!(MarkerFile {
        format: FORMAT,
        files
    });
    fs::write(&path, format!("{mark}\n")).map_err(MirrorError::write(&path))
}

/// Writes the files of all pages and resources, in one pass over the rows.
struct MirrorWriter<'a> {
    dir: &'a Path,
    folder: &'a Path,
    files: &'a MirrorFileMap,
    report: MirrorReport,
    /// The URLs whose records could not be read.
    failed: Vec<String>,
}

impl MirrorWriter<'_> {
    fn page(&mut self, row: &PageRow) -> Result<(), MirrorError> {
        let Ok(url) = canonicalize(None, &row.url) else {
            return Ok(());
        };
        let Some(path) = self.files.own(url.as_str()) else {
            return Ok(());
        };
        let Some(archived) = read_as_sent(self.dir, row) else {
            self.failed.push(url.as_str().to_owned());
            return Ok(());
        };
        let kind = document_kind(archived.content_type.as_deref(), &archived.body);
        let written = self.rewritten(kind, &archived, &url, path);
        self.write(path, &written)?;
        self.report.bytes += written.len() as u64;
        self.report.truncated += u64::from(archived.is_truncated);
        if kind == ContentKind::Html {
            self.report.pages += 1;
            self.report.start.get_or_insert_with(|| path.to_owned());
        } else {
            self.report.resources += 1;
        }
        Ok(())
    }

    /// Returns the body of a page, with its references rewritten for the file at `path`.
    fn rewritten<'b>(
        &self,
        kind: ContentKind,
        archived: &'b ArchivedPageBody,
        url: &CanonicalUrl,
        path: &str,
    ) -> Cow<'b, [u8]> {
        let mut file = |to: &CanonicalUrl| {
            // The path needs no escaping, because file names of a mirror contain no reserved
            // characters of URLs.
            let target = self.files.of_link(to)?;
            let mut address = relative_path(path, target.path);
            if let Some(fragment) = target.fragment {
                address.push('#');
                address.push_str(fragment);
            }
            Some(address)
        };
        let body = &archived.body;
        let content_type = archived.content_type.as_deref();
        match kind {
            ContentKind::Html => rewrite_html(body, content_type, url, &mut file),
            ContentKind::Css => rewrite_css(body, content_type, url, &mut file),
            _ => Cow::Borrowed(body),
        }
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), MirrorError> {
        let file: PathBuf = self.folder.join(path);
        let unwritable = MirrorError::write(&file);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(&unwritable)?;
        }
        fs::write(&file, bytes).map_err(unwritable)
    }
}

#[cfg(test)]
mod tests;
