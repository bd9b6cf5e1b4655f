//! Packages a crawl's directory as one WACZ file.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crawl_archive::{CAPTURES, FOLDER, INDEX, write_index};
use crawl_records::CrawlSettings;

use crate::capture_copier::CaptureCopier;
use crate::capture_rounds::CaptureRounds;
use crate::data_package::{self, DataPackageMetadata};
use crate::earlier_wacz::EarlierWaczFiles;
use crate::error::WaczError;
use crate::index_blocks;
use crate::options::WaczOptions;
use crate::original_captures::OriginalCaptureFinder;
use crate::page_list::{PageListKind, PageListWriter};
use crate::zip_file_writer::ZipFileWriter;

/// The result of packaging a crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenWacz {
    /// The path of the WACZ file, which is in the folder `scratch`.
    pub file: PathBuf,
    /// The length of the WACZ file in bytes.
    pub bytes: u64,
    /// The number of captures in the index, including those of robots.txt.
    pub captures: u64,
    /// The number of pages in the page lists.
    pub pages: u64,
    /// The number of WARC files in the package.
    pub warc_files: u64,
    /// The number of revisits whose payload is in an earlier round. Such revisits can't be replayed
    /// from this file alone.
    pub revisits_of_earlier: u64,
    /// How many of the revisits in `revisits_of_earlier` don't name the file with their payload,
    /// because none of the given files contains its round.
    pub without_container: u64,
    /// Descriptions of the records that were left out because they are missing or damaged.
    pub damages: Vec<String>,
}

/// Writes the crawl in `dir` as a WACZ file into the folder `scratch`, which must be empty.
/// Temporary files in `scratch` take up to twice the size of the index. If the crawl is running,
/// packages its current records.
///
/// # Errors
/// [`WaczError::NoCaptures`] if there is nothing to replay, [`WaczError::EmptyRound`],
/// [`WaczError::NoRound`], [`WaczError::NotEarlier`], and I/O errors. Damaged records don't cause
/// an error, but are listed in [`WrittenWacz::damages`].
pub fn package(
    dir: &Path,
    scratch: &Path,
    options: &WaczOptions,
) -> Result<WrittenWacz, WaczError> {
    let settings = CrawlSettings::read(dir)?;
    let rounds = CaptureRounds::read(dir, options.round)?;
    let mut earlier = EarlierWaczFiles::read(&options.earlier)?;
    let file = scratch.join("package.wacz");
    let unwritable = WaczError::write(&file);
    let mut zip = ZipFileWriter::create(&file).map_err(&unwritable)?;
    let index = UnsortedIndex::create(&scratch.join("index"))?;
    let mut lines = BufWriter::new(&index.file);
    let copied = CaptureCopier {
        dir,
        rounds: &rounds,
        round: None,
        earlier: &mut earlier,
        out: &file,
    }
    .copy(&mut zip, &mut lines)?;
    lines.flush().map_err(&unwritable)?;
    drop(lines);
    if copied.captures == 0 {
        let dir = dir.to_owned();
        return Err(WaczError::NoCaptures { dir });
    }
    let sorted = index.sorted()?;
    index_blocks::write(&sorted, &mut zip).map_err(&unwritable)?;
    let mut lists = PageListWriter {
        dir,
        round: options.round,
        copied: &copied,
        originals: OriginalCaptureFinder::new(dir, scratch),
        main: None,
        out: &file,
    };
    let seeds = lists.write(PageListKind::Seeds, &mut zip)?;
    let other_pages = lists.write(PageListKind::Others, &mut zip)?;
    let facts = DataPackageMetadata {
        options,
        settings: &settings,
        rounds: &rounds.numbers(),
        main: lists.main.as_ref(),
        required: earlier.required(),
    };
    data_package::write(facts, &mut zip).map_err(&unwritable)?;
    Ok(WrittenWacz {
        bytes: zip.finish().map_err(&unwritable)?,
        captures: copied.captures,
        pages: seeds + other_pages,
        warc_files: copied.files,
        revisits_of_earlier: copied.revisits_of_earlier,
        without_container: copied.without_container,
        damages: copied.damages,
        file,
    })
}

/// The index lines in the order of the archive. They are sorted on disk later.
struct UnsortedIndex {
    folder: PathBuf,
    file: File,
}

impl UnsortedIndex {
    /// Creates the folders of a crawl's directory in `folder`, because the code that sorts the
    /// index expects these.
    fn create(folder: &Path) -> Result<UnsortedIndex, WaczError> {
        let log = folder.join(FOLDER).join(CAPTURES);
        let made = fs::create_dir_all(folder.join(FOLDER)).and_then(|()| File::create(&log));
        Ok(UnsortedIndex {
            folder: folder.to_owned(),
            file: made.map_err(WaczError::write(&log))?,
        })
    }

    fn sorted(self) -> Result<PathBuf, WaczError> {
        write_index(&self.folder, u64::MAX)?;
        Ok(self.folder.join(FOLDER).join(INDEX))
    }
}
