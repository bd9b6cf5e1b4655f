//! The file of `--log`: limited in size, and containing only whole lines even after a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How far from the end of a file to look for the end of its last whole line.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// A log file of whole lines. A full file is renamed to `FILE.1`, `FILE.1` to `FILE.2` and so on,
/// and a new file begins.
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Maximum bytes per file, exceeded only by a single longer line. `None` for no limit.
    max_bytes: Option<u64>,
    /// The size that triggers rotation, in bytes: `max_bytes`, or more after a failed rotation.
    full: u64,
    /// How many full files to keep.
    keep: u32,
    /// Number of lines lost since the last one that was written.
    missing: u64,
    /// Warns the operator that lines are missing.
    warn: Box<dyn Fn(&str) + Send>,
}

impl LogFile {
    /// Opens a file and truncates it after its last whole line, since a power cut may have torn the
    /// line after that. Removes nothing from a file without line breaks at its end, which probably
    /// isn't a log.
    pub(super) fn open(
        path: &Path,
        max_bytes: Option<u64>,
        keep: u32,
        warn: impl Fn(&str) + Send + 'static,
    ) -> io::Result<LogFile> {
        let mut file = opened(path)?;
        let bytes = end_last_line(&mut file)?;
        // Set no maximum for a pipe, because a pipe can't be rotated.
        let max_bytes =
            max_bytes.filter(|_| file.metadata().is_ok_and(|metadata| metadata.is_file()));
        Ok(LogFile {
            path: path.to_owned(),
            file,
            bytes,
            max_bytes,
            full: max_bytes.unwrap_or(u64::MAX),
            keep,
            missing: 0,
            warn: Box::new(warn),
        })
    }

    /// Renames the full files and starts a new one. Opens the new file first, so that the oldest
    /// file isn't lost if that fails.
    fn rotate(&mut self) -> io::Result<()> {
        let with_suffix = |end: &str| {
            let mut name = self.path.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        let new = with_suffix(".new");
        let file = opened(&new)?;
        let bytes = file.metadata()?.len();
        if let Err(why) = self.rename_all(&with_suffix) {
            let _ = fs::remove_file(&new);
            return Err(why);
        }
        fs::rename(&new, &self.path)?;
        (self.file, self.bytes) = (file, bytes);
        Ok(())
    }

    /// Renames each file to the next name, the oldest file first, so that a crash in between loses
    /// no line.
    fn rename_all(&self, with_suffix: &impl Fn(&str) -> PathBuf) -> io::Result<()> {
        for number in (0..self.keep).rev() {
            let from = match number {
                0 => self.path.clone(),
                _ => with_suffix(&format!(".{number}")),
            };
            match fs::rename(from, with_suffix(&format!(".{}", number + 1))) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Write for LogFile {
    /// Writes a whole line. If the line doesn't fit into the file, rotates the file first.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let after = self.bytes + line.len() as u64;
        if let Some(max_bytes) = self.max_bytes
            && self.bytes > 0
            && after > self.full
        {
            // If rotation fails, the log continues in this file, and rotation is retried after
            // another `max_bytes`.
            self.full = match self.rotate() {
                Ok(()) => max_bytes,
                Err(_) => self.bytes.saturating_add(max_bytes),
            };
        }
        if let Err(why) = self.file.write_all(line) {
            // Remove the part of the line that was written. It would otherwise be joined with the
            // next line.
            let _ = self.file.set_len(self.bytes);
            if self.missing == 0 {
                let path = self.path.display();
                (self.warn)(&format!(
                    "can't write to the log `{path}`: {why}; the crawl continues"
                ));
            }
            self.missing += 1;
            return Err(why);
        }
        self.bytes += line.len() as u64;
        if self.missing > 0 {
            let (path, missing) = (self.path.display(), self.missing);
            (self.warn)(&format!(
                "writing to the log `{path}` again; missing lines: {missing}"
            ));
            self.missing = 0;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn opened(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Open a regular file for reading too, to find its last whole line. A pipe can't be read back.
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    options.create(true).append(true).read(is_file).open(path)
}

/// Truncates a file after its last line end, and returns the new length. If its last
/// `MAX_LINE_BYTES` contain no line end, appends one instead.
fn end_last_line(file: &mut File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(metadata.len());
    }
    let from = metadata.len().saturating_sub(MAX_LINE_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    (&*file).take(MAX_LINE_BYTES).read_to_end(&mut end)?;
    let Some(last) = end.iter().rposition(|byte| *byte == b'\n') else {
        file.write_all(b"\n")?;
        return Ok(metadata.len() + 1);
    };
    let length = from + last as u64 + 1;
    if length < metadata.len() {
        file.set_len(length)?;
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;
    use std::mem;
    use std::path::Path;
    use std::sync::mpsc;

    use super::LogFile;

    /// Returns the files of a folder by name, with their contents.
    fn files(dir: &Path) -> Vec<(String, String)> {
        let mut files: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, fs::read_to_string(&path).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn a_full_file_is_rotated_and_the_oldest_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let check = |expected: &[(&str, &str)]| {
            let actual = files(dir.path());
            let actual: Vec<_> = actual
                .iter()
                .map(|(name, text)| (&**name, &**text))
                .collect();
            assert_eq!(actual, expected);
        };
        let mut log = LogFile::open(&path, Some(8), 2, |_| {}).unwrap();
        for line in ["a-1\n", "a-2\n", "b-1\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        check(&[("log", "b-1\n"), ("log.1", "a-1\na-2\n")]);
        // A line longer than the limit gets a separate file, and a new run continues the log.
        drop(log);
        let mut log = LogFile::open(&path, Some(8), 2, |_| {}).unwrap();
        log.write_all(b"long long\n").unwrap();
        check(&[
            ("log", "long long\n"),
            ("log.1", "b-1\n"),
            ("log.2", "a-1\na-2\n"),
        ]);
        log.write_all(b"c\n").unwrap();
        check(&[("log", "c\n"), ("log.1", "long long\n"), ("log.2", "b-1\n")]);
    }

    #[test]
    fn only_a_torn_line_is_truncated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        for (before, after) in [
            ("a\nb", "a\nc\n"),
            ("a\n", "a\nc\n"),
            ("b", "b\nc\n"),
            ("", "c\n"),
        ] {
            fs::write(&path, before).unwrap();
            let mut log = LogFile::open(&path, None, 1, |_| {}).unwrap();
            log.write_all(b"c\n").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after, "{before:?}");
        }
        // A file whose last part has no line end is not a log, so it is not truncated.
        fs::write(&path, "x".repeat(3 << 20)).unwrap();
        LogFile::open(&path, None, 1, |_| {}).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), (3 << 20) + 1);
    }

    #[test]
    fn a_failed_rotation_keeps_older_logs_and_is_retried() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(dir.path().join("log.1"), "older\n").unwrap();
        // Simulates a lack of file descriptors: the next file can't be opened.
        let new = dir.path().join("log.new");
        fs::create_dir(&new).unwrap();
        let mut log = LogFile::open(&path, Some(4), 1, |_| {}).unwrap();
        for line in ["a\n", "b\n", "c\n", "d\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(
            (&*read("log.1"), &*read("log")),
            ("older\n", "a\nb\nc\nd\n")
        );
        fs::remove_dir(&new).unwrap();
        log.write_all(b"e\n").unwrap();
        assert_eq!((&*read("log.1"), &*read("log")), ("a\nb\nc\nd\n", "e\n"));
        log.write_all(b"f\ng\n").unwrap();
        let remaining: Vec<_> = files(dir.path());
        let expected = [("log", "f\ng\n"), ("log.1", "e\n")];
        assert_eq!(
            remaining,
            expected.map(|(name, text)| (name.into(), text.into()))
        );
    }

    #[test]
    fn missing_lines_are_reported_once_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (warn, warnings) = mpsc::channel();
        let warn = move |line: &str| warn.send(line.to_owned()).unwrap();
        let mut log = LogFile::open(&dir.path().join("log"), None, 1, warn).unwrap();
        log.write_all(b"a\n").unwrap();
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let file = mem::replace(&mut log.file, full);
        for line in ["b\n", "c\n"] {
            log.write_all(line.as_bytes()).unwrap_err();
        }
        let first: Vec<_> = warnings.try_iter().collect();
        assert!(
            first.len() == 1 && first[0].contains("No space left"),
            "{first:?}"
        );
        log.file = file;
        for line in ["d\n", "e\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        let then: Vec<_> = warnings.try_iter().collect();
        assert!(
            then.len() == 1 && then[0].ends_with("missing lines: 2"),
            "{then:?}"
        );
        assert_eq!(files(dir.path())[0].1, "a\nd\ne\n");
    }
}
