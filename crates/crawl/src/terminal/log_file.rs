//! The file of `--log`: bounded, and whole lines whatever becomes of the process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The end of a file in which the beginning of its last line is looked for.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// A file that takes whole lines. Once it is full it takes the name `FILE.1`, `FILE.1` that of
/// `FILE.2` and so on, and another begins.
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Bytes of a file, unless a line is longer; none: no bound.
    max_bytes: Option<u64>,
    /// Bytes at which this file is full; more than `max_bytes` where no other could be begun.
    full: u64,
    /// Full files that are kept.
    keep: u32,
    /// Lines that could not be written since the last one that was.
    missing: u64,
    /// Tells the operator that lines are missing.
    tell: Box<dyn Fn(&str) + Send>,
}

impl LogFile {
    /// Opens a file behind its last whole line: a power cut may have torn one.
    pub(super) fn open(
        path: &Path,
        max_bytes: Option<u64>,
        keep: u32,
        tell: impl Fn(&str) + Send + 'static,
    ) -> io::Result<LogFile> {
        let mut file = opened(path)?;
        let bytes = whole_lines(&mut file)?;
        if file.metadata()?.len() > bytes {
            file.set_len(bytes)?;
        }
        // A pipe keeps its name.
        let max_bytes = max_bytes.filter(|_| file.metadata().is_ok_and(|found| found.is_file()));
        Ok(LogFile {
            path: path.to_owned(),
            file,
            bytes,
            max_bytes,
            full: max_bytes.unwrap_or(u64::MAX),
            keep,
            missing: 0,
            tell: Box::new(tell),
        })
    }

    /// Begins another file, once that can be opened: a failure must not cost the oldest log.
    fn rotate(&mut self) -> io::Result<()> {
        let named = |end: &str| {
            let mut name = self.path.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        let new = named(".new");
        let file = opened(&new)?;
        let bytes = file.metadata()?.len();
        if let Err(why) = self.rename_all(&named) {
            let _ = fs::remove_file(&new);
            return Err(why);
        }
        fs::rename(&new, &self.path)?;
        (self.file, self.bytes) = (file, bytes);
        Ok(())
    }

    /// Gives each file the next name, the last first: a death in between loses no line.
    fn rename_all(&self, named: &impl Fn(&str) -> PathBuf) -> io::Result<()> {
        for number in (0..self.keep).rev() {
            let from = match number {
                0 => self.path.clone(),
                _ => named(&format!(".{number}")),
            };
            match fs::rename(from, named(&format!(".{}", number + 1))) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Write for LogFile {
    /// Writes a line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let after = self.bytes + line.len() as u64;
        if let Some(max_bytes) = self.max_bytes
            && self.bytes > 0
            && after > self.full
        {
            // Where no file can be opened or renamed, the log goes on in this one, and tries
            // again when it has grown by another file's length.
            self.full = match self.rotate() {
                Ok(()) => max_bytes,
                Err(_) => self.bytes.saturating_add(max_bytes),
            };
        }
        if let Err(why) = self.file.write_all(line) {
            // What a full disk took of the line would stand before the next one.
            let _ = self.file.set_len(self.bytes);
            if self.missing == 0 {
                let path = self.path.display();
                (self.tell)(&format!(
                    "the log `{path}` can't be written: {why}; the crawl goes on"
                ));
            }
            self.missing += 1;
            return Err(why);
        }
        self.bytes += line.len() as u64;
        if self.missing > 0 {
            let (path, missing) = (self.path.display(), self.missing);
            (self.tell)(&format!(
                "the log `{path}` is written again; lines that are missing in it: {missing}"
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
    // What is no file, such as a pipe, can't be read back.
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    options.create(true).append(true).read(is_file).open(path)
}

/// The length of a file up to the end of its last whole line.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    let found = file.metadata()?;
    if !found.is_file() || found.len() == 0 {
        return Ok(found.len());
    }
    let from = found.len().saturating_sub(MAX_LINE_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    (&*file).take(MAX_LINE_BYTES).read_to_end(&mut end)?;
    let last = end.iter().rposition(|byte| *byte == b'\n');
    Ok(match last {
        Some(last) => from + last as u64 + 1,
        None if from == 0 => 0,
        // It is no log of ours: nothing of it is taken away.
        None => found.len(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;
    use std::mem;
    use std::path::Path;
    use std::sync::mpsc;

    use super::LogFile;

    /// The files of a folder with what is in them, by name.
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
    fn ours_a_full_file_takes_the_next_name_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let check = |expected: &[(&str, &str)]| {
            let found = files(dir.path());
            let found: Vec<_> = found
                .iter()
                .map(|(name, text)| (&**name, &**text))
                .collect();
            assert_eq!(found, expected);
        };
        let mut log = LogFile::open(&path, Some(8), 2, |_| {}).unwrap();
        for line in ["a-1\n", "a-2\n", "b-1\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        check(&[("log", "b-1\n"), ("log.1", "a-1\na-2\n")]);
        // A line that is longer than a file has one to itself, and another run goes on.
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
    fn ours_a_torn_line_is_cut_off_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        for (before, after) in [
            ("a\nb", "a\nc\n"),
            ("a\n", "a\nc\n"),
            ("b", "c\n"),
            ("", "c\n"),
        ] {
            fs::write(&path, before).unwrap();
            let mut log = LogFile::open(&path, None, 1, |_| {}).unwrap();
            log.write_all(b"c\n").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after, "{before:?}");
        }
        // What has no line end within reach is somebody's file.
        fs::write(&path, "x".repeat(3 << 20)).unwrap();
        LogFile::open(&path, None, 1, |_| {}).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 3 << 20);
    }

    #[test]
    fn ours_a_rotation_that_fails_keeps_the_older_logs_and_is_tried_again_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(dir.path().join("log.1"), "older\n").unwrap();
        // As without file descriptors: the next file can't be opened.
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
        let found: Vec<_> = files(dir.path());
        let expected = [("log", "f\ng\n"), ("log.1", "e\n")];
        assert_eq!(
            found,
            expected.map(|(name, text)| (name.into(), text.into()))
        );
    }

    #[test]
    fn ours_lines_that_are_missing_are_told_once_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (tell, told) = mpsc::channel();
        let tell = move |line: &str| tell.send(line.to_owned()).unwrap();
        let mut log = LogFile::open(&dir.path().join("log"), None, 1, tell).unwrap();
        log.write_all(b"a\n").unwrap();
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let file = mem::replace(&mut log.file, full);
        for line in ["b\n", "c\n"] {
            log.write_all(line.as_bytes()).unwrap_err();
        }
        let first: Vec<_> = told.try_iter().collect();
        assert!(
            first.len() == 1 && first[0].contains("No space left"),
            "{first:?}"
        );
        log.file = file;
        for line in ["d\n", "e\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        let then: Vec<_> = told.try_iter().collect();
        assert!(
            then.len() == 1 && then[0].ends_with("missing in it: 2"),
            "{then:?}"
        );
        assert_eq!(files(dir.path())[0].1, "a\nd\ne\n");
    }
}
