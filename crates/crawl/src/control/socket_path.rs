//! The path of the socket of a crawl, and how it is named to the system.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The socket's name in the crawl's `state/`.
pub(crate) const SOCKET: &str = "control.sock";

/// Bytes that the address of a socket has room for, its end among them (`sun_path`).
const MAX_ADDRESS_BYTES: usize = if cfg!(target_os = "linux") { 108 } else { 104 };

/// A path of a socket that is short enough for an address.
#[derive(Debug)]
pub(crate) struct SocketPath {
    path: PathBuf,
    /// Names the folder while the path goes by way of it.
    _folder: Option<File>,
}

impl SocketPath {
    /// The path of `name` in `folder`. Where it is too long, Linux is asked by way of the opened
    /// folder.
    ///
    /// # Errors
    /// `InvalidFilename` where no address has room for it; otherwise the folder can't be opened.
    pub(crate) fn of(folder: &Path, name: &str) -> io::Result<SocketPath> {
        let path = folder.join(name);
        if path.as_os_str().len() < MAX_ADDRESS_BYTES {
            return Ok(SocketPath {
                path,
                _folder: None,
            });
        }
        SocketPath::by_folder(folder, name)
    }

    fn by_folder(folder: &Path, name: &str) -> io::Result<SocketPath> {
        use std::os::fd::AsRawFd as _;
        let folder = File::open(folder)?;
        let number = folder.as_raw_fd();
        Ok(SocketPath {
            path: PathBuf::from(format!("/proc/self/fd/{number}/{name}")),
            _folder: Some(folder),
        })
    }

    /// As the system takes it, while this value lives.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::{MAX_ADDRESS_BYTES, SocketPath};

    #[test]
    fn ours_a_path_that_is_too_long_goes_by_way_of_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(100)).join("e".repeat(100));
        std::fs::create_dir_all(&deep).unwrap();
        for folder in [dir.path(), &deep] {
            let place = SocketPath::of(folder, "s").unwrap();
            let _listener = UnixListener::bind(place.path()).unwrap();
            assert!(folder.join("s").exists());
            assert!(place.path().as_os_str().len() < MAX_ADDRESS_BYTES);
            let again = SocketPath::of(folder, "s").unwrap();
            assert!(UnixStream::connect(again.path()).is_ok());
        }
        assert!(SocketPath::of(&deep.join("gone"), "s").is_err());
    }
}
