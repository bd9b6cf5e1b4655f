//! Writes the files that a user names on the command line.

use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf, absolute};

use crawl_archive::{AtomicFile, AtomicFileError, end_of_links};

use crate::error::{CommandError, unwritable};

/// Writes a file atomically: an existing file is replaced only once the new one is complete, so a
/// full disk leaves the old one intact. If the folder doesn't allow new files, overwrites the
/// existing file instead. Follows a symbolic link, and creates or replaces its target. If `path` is
/// not a regular file, such as `/dev/stdout`, writes to it directly.
pub(crate) fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CommandError> {
    let target = end_of_links(path);
    let written = match fs::metadata(&target) {
        Ok(found) if !found.is_file() => fs::write(path, bytes),
        Ok(found) => match replace(&target, bytes.as_ref(), Some(found.permissions())) {
            Err(why) if why.kind() == ErrorKind::PermissionDenied => fs::write(path, bytes),
            replaced => replaced,
        },
        Err(why) if why.kind() == ErrorKind::NotFound => replace(&target, bytes.as_ref(), None),
        Err(why) => Err(why),
    };
    written.map_err(|why| unwritable(path, &why))
}

/// Refuses to write the file or folder `out` inside one of the crawl directories `dirs`. Such an
/// output could overwrite one of the crawl's files, and a crawl can't continue in a directory with
/// a file that isn't its own. Accepts an `out` that is itself one of `dirs`, because commands
/// refuse an output that exists.
pub(crate) fn refuse_inside<'a>(
    out: &Path,
    dirs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), CommandError> {
    let is_stdout = out.as_os_str() == "-";
    let is_below = |dir: &&Path| is_inside(out, dir) && !is_inside(dir, out);
    match dirs.into_iter().find(is_below) {
        Some(dir) if !is_stdout => Err(inside_error(&out.display(), dir)),
        _ => Ok(()),
    }
}

/// Returns the error for the place `out` inside the crawl directory `dir`.
pub(crate) fn inside_error(out: &dyn Display, dir: &Path) -> CommandError {
    CommandError::usage(format!(
        "{out} is inside the crawl's directory {}, which may contain only the crawl's own files",
        dir.display()
    ))
    .hint("choose a place outside that directory")
}

/// Returns whether `path` is the directory `dir` or inside of it, after resolving symbolic links.
/// False if `dir` is empty.
pub(crate) fn is_inside(path: &Path, dir: &Path) -> bool {
    !dir.as_os_str().is_empty() && real_path(path).starts_with(real_path(dir))
}

/// Returns whether `path` is the HTML report of the crawl in `dir`. `crawl report` may replace this
/// file, although it is in the crawl's directory.
pub(crate) fn is_report_of(path: &Path, dir: &Path) -> bool {
    real_path(path) == real_path(dir).join("report.html")
}

/// Returns the absolute path that `path` leads to, without symbolic links and `..`. The path
/// doesn't have to exist.
fn real_path(path: &Path) -> PathBuf {
    let path = end_of_links(path);
    let mut real = PathBuf::new();
    for part in absolute(&path).unwrap_or(path).components() {
        match part {
            Component::ParentDir => drop(real.pop()),
            part => real.push(part),
        }
        if let Ok(existing) = fs::canonicalize(&real) {
            real = existing;
        }
    }
    real
}

/// Replaces a file, and keeps the permissions of the earlier file.
fn replace(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let of_file = |error| match error {
        AtomicFileError::Write { source, .. } => source,
        occupied => io::Error::other(occupied),
    };
    let mut file = AtomicFile::create(path).map_err(of_file)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.finish().map_err(of_file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;

    use super::{is_report_of, refuse_inside, write_file};

    #[test]
    fn nothing_is_written_into_a_crawl_directory() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("crawl/archive")).unwrap();
        symlink("crawl", at("link")).unwrap();
        symlink("crawl/new.html", at("link.html")).unwrap();
        symlink("link.html", at("second.html")).unwrap();
        let is_refused = |out: &str, dir: &str| refuse_inside(&at(out), [&*at(dir)]).is_err();
        for out in [
            "crawl/new.html",
            "crawl/new/folder",
            "crawl/archive/../pages.jsonl",
            "new/../crawl/new.html",
            "link/new.html",
            "second.html",
        ] {
            assert!(is_refused(out, "crawl"), "{out}");
            assert!(is_refused(out, "link"), "{out}");
            assert!(!is_refused(out, "other"), "{out}");
        }
        for out in [
            "crawl",
            "link",
            "crawl2",
            "crawl.html",
            "crawl/../new.html",
            "link/../new",
        ] {
            assert!(!is_refused(out, "crawl"), "{out}");
        }
        assert!(is_report_of(&at("link/report.html"), &at("crawl")));
        assert!(!is_report_of(
            &at("crawl/archive/report.html"),
            &at("crawl")
        ));
        refuse_inside(Path::new("-"), [Path::new(".")]).unwrap();
        refuse_inside(Path::new("page.html"), [Path::new(".")]).unwrap_err();
        refuse_inside(Path::new("page.html"), [Path::new("")]).unwrap();
    }

    #[test]
    fn a_file_is_replaced_or_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("page.html");
        write_file(&page, "old").unwrap();
        fs::set_permissions(&page, fs::Permissions::from_mode(0o600)).unwrap();
        let opened = fs::File::open(&page).unwrap();
        symlink("page.html", dir.path().join("link")).unwrap();
        write_file(&dir.path().join("link"), "new").unwrap();
        assert_eq!(fs::read_to_string(&page).unwrap(), "new");
        assert_eq!(
            fs::metadata(&page).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(
            fs::symlink_metadata(dir.path().join("link"))
                .unwrap()
                .is_symlink()
        );
        // The open handle still reads the old content, so the old file was replaced and not
        // overwritten. A full disk would have left it in place.
        assert_eq!(std::io::read_to_string(opened).unwrap(), "old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        // Write through a link whose target doesn't exist yet.
        fs::create_dir(dir.path().join("reports")).unwrap();
        symlink("reports/latest", dir.path().join("second")).unwrap();
        symlink("today.html", dir.path().join("reports/latest")).unwrap();
        write_file(&dir.path().join("second"), "new").unwrap();
        let created = dir.path().join("reports/today.html");
        assert_eq!(fs::read_to_string(created).unwrap(), "new");
        symlink("loop", dir.path().join("loop")).unwrap();
        write_file(&dir.path().join("loop"), "new").unwrap_err();
        assert!(
            fs::symlink_metadata(dir.path().join("loop"))
                .unwrap()
                .is_symlink()
        );
        let refused = write_file(dir.path(), "new").unwrap_err();
        assert!(
            refused.message.contains("Is a directory"),
            "{}",
            refused.message
        );
        write_file(Path::new("/dev/null"), "new").unwrap();
    }
}
