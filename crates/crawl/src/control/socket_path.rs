//! Path of the control socket, shortened if it doesn't fit into a socket address.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The socket's name in the crawl's `state/`.
pub(crate) const SOCKET: &str = "control.sock";

/// Maximum bytes of a socket address, including its terminator (`sun_path`).
const MAX_ADDRESS_BYTES: usize = if cfg!(target_os = "linux") { 108 } else { 104 };

/// A socket path that fits into an address.
#[derive(Debug)]
pub(crate) struct SocketPath {
    path: PathBuf,
    /// Keeps the folder open while `path` refers to its descriptor.
    _folder: Option<File>,
}

impl SocketPath {
    /// Returns the path of the socket `name` in `folder`. On Linux, a path that is too long for a
    /// socket address is replaced by one through the folder's descriptor, such as
    /// `/proc/self/fd/7/NAME`.
    ///
    /// # Errors
    /// `InvalidFilename` if the path doesn't fit into an address, or the error from opening the
    /// folder.
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

    /// Returns the path to pass to the system, valid while this value is alive.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::{MAX_ADDRESS_BYTES, SocketPath};

    #[test]
    fn a_long_path_uses_the_descriptor_of_its_folder() {
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
