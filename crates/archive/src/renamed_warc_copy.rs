//! Copies WARC files to new names.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::archive_writer::{serial, suited};
use crate::error::ReadError;
use crate::regular_file::{open_regular, replace_file};
use crate::warc_compression::WarcCompression;
use crate::warc_reader::read_record;
use crate::warc_record_encoder::CaptureEncoder;

/// A copied WARC file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedWarc {
    /// Length of the copy, in bytes.
    pub length: u64,
    /// The number of bytes by which every record after the first one moved.
    pub shift: i64,
}

/// Returns whether `name` has the form of this program's WARC file names.
#[must_use]
pub fn is_warc(name: &str) -> bool {
    serial(name).is_some()
}

/// Returns the name of a WARC file with `mark` inserted before the date:
/// `crawl-example.org-w2-20261121000000-00000.warc.gz`. The mark distinguishes files of the same
/// name from different directories.
#[must_use]
pub fn marked_name(name: &str, mark: &str) -> String {
    let mut parts: Vec<&str> = name.rsplitn(3, '-').collect();
    let mark = suited(mark);
    if parts.len() == 3 && !mark.is_empty() {
        parts.insert(2, &mark);
    }
    parts.reverse();
    parts.join("-")
}

/// Copies the WARC file `from` to `to` and syncs the copy. In the copy, the file name in the
/// warcinfo record is that of `to`. If this changes the length of the warcinfo record, all other
/// records move.
///
/// # Errors
/// [`ReadError`] if the first record of `from` is not a warcinfo or can't be read, or on
/// I/O errors.
pub fn copy_renamed(from: &Path, to: &Path) -> Result<CopiedWarc, ReadError> {
    let first = read_record(from, 0)?;
    let name = to.file_name().map(|name| name.to_string_lossy());
    let (Some(name), "warcinfo") = (name, first.kind()) else {
        return Err(ReadError::Malformed {
            file: from.to_owned(),
            offset: 0,
            what: "the first record of a WARC file is not a warcinfo record",
        });
    };
    let fields = first.fields.iter().map(|(field, value)| match &**field {
        "WARC-Filename" => (field.as_str(), &*name),
        _ => (field.as_str(), value.as_str()),
    });
    let mut member = Vec::new();
    let compression = WarcCompression::of_file(&name).map_err(|why| ReadError::io(to, why))?;
    CaptureEncoder::new(compression.unwrap_or_default()).again(fields, &first.block, &mut member);
    let copy = || -> io::Result<u64> {
        let mut input = open_regular(from)?;
        let length = input.metadata()?.len();
        input.seek(SeekFrom::Start(first.length))?;
        let mut out: File = replace_file(to)?;
        out.write_all(&member)?;
        let rest = length.saturating_sub(first.length);
        let copied = io::copy(&mut BufReader::new(input.take(rest)), &mut out)?;
        out.sync_all()?;
        match copied == rest {
            true => Ok(member.len() as u64 + rest),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    };
    let length = copy().map_err(|why| ReadError::io(to, why))?;
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    Ok(CopiedWarc {
        length,
        shift: signed(member.len() as u64) - signed(first.length),
    })
}

#[cfg(test)]
mod tests {
    use super::{is_warc, marked_name};

    #[test]
    fn a_mark_precedes_the_date() {
        let marked = marked_name("crawl-a-b.example-20261121000000-00012.warc.gz", "w/2");
        assert_eq!(marked, "crawl-a-b.example-w-2-20261121000000-00012.warc.gz");
        assert!(is_warc(&marked));
        let plain = "crawl-20261121000000-00012.warc.gz";
        assert_eq!(
            marked_name(plain, "w2"),
            "crawl-w2-20261121000000-00012.warc.gz"
        );
        assert_eq!(marked_name(plain, "/"), plain);
        assert!(!is_warc("index.cdxj") && !is_warc("crawl-x.warc.gz"));
    }
}
