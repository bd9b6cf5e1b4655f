//! Converts the system calls of a program to the changes that they made to its files.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::super::random::SeededRandom;
use super::disk_model::{
    DiskChange, DiskChangeLog, FileContent, FileNodeId, FolderImage, ROOT, sectors,
};
use super::system_calls::{SystemCall, calls};

/// The changes that a program made in one folder.
pub(super) struct RecordedDiskChanges {
    pub(super) changes: DiskChangeLog,
    /// Number of changes at the start of `changes` that create the files that existed before the
    /// run. These changes are not part of the run.
    before: usize,
    /// For each file or folder, the name under which it was created, without the path of its
    /// folder.
    names: Vec<String>,
}

impl RecordedDiskChanges {
    /// Reads the trace of a program that ran in the folder `within`. Returns its changes to the
    /// subfolder `name`, which contained `before`.
    ///
    /// # Errors
    /// Fails if a file was changed in an unsupported way.
    pub(super) fn read(
        trace: &str,
        within: &Path,
        name: &str,
        before: &FolderImage,
    ) -> Result<RecordedDiskChanges> {
        let calls = calls(trace)?;
        let mut reading = RecordingReader {
            within,
            name,
            changes: DiskChangeLog::new(),
            nodes: vec![FileNode::new("", true)],
            open: HashMap::new(),
            files: Vec::new(),
        };
        reading.begin(before)?;
        let before = reading.changes.len();
        for call in &calls {
            reading.take(call).with_context(|| call.short())?;
        }
        Ok(RecordedDiskChanges {
            changes: reading.changes,
            before,
            names: reading.nodes.into_iter().map(|node| node.name).collect(),
        })
    }

    /// Checks that the last rename to this file name is durable at the end of the run.
    ///
    /// # Errors
    /// Fails if a power cut right after the end may undo it.
    pub(super) fn ensure_renamed(&self, name: &str) -> Result<()> {
        let all = self.changes.before(self.changes.len());
        let last = all.iter().rev().find_map(|(ended, change)| match change {
            DiskChange::Rename { to, .. } if to.1 == name => Some((*ended, to.0)),
            _ => None,
        });
        let is_synced = |(ended, folder): (usize, FileNodeId)| {
            all.iter().any(|(_, change)| match change {
                DiskChange::Sync { node, begun } => *node == folder && ended < *begun,
                _ => false,
            })
        };
        ensure!(
            last.is_none_or(is_synced),
            "a power cut may undo the last rename to {name}"
        );
        Ok(())
    }

    /// Draws the moment of a power cut, as the number of changes before it. A uniform draw would
    /// seldom hit the moment right after a commit that is not synced yet. So every third draw
    /// chooses such a moment.
    pub(super) fn moment(&self, dice: &mut SeededRandom) -> usize {
        let all = self.changes.before(self.changes.len());
        let is_commit = |change: &DiskChange| match change {
            DiskChange::Write { file, .. } => self.is_journal(*file),
            _ => false,
        };
        let commits = (self.before..all.len()).filter(|at| is_commit(&all[*at].1));
        let commits: Vec<usize> = commits.collect();
        match dice.below(3) {
            0 if !commits.is_empty() => commits[dice.below(commits.len() as u64) as usize] + 1,
            _ => self.before + dice.below((all.len() - self.before) as u64 + 1) as usize,
        }
    }

    /// Draws a cut right after a commit that is not synced yet. The commit lost one sector inside a
    /// value, so the store looks damaged when opened. Returns the cut and the files after it.
    /// `None` if no value is long enough.
    pub(super) fn torn_commit(&self, dice: &mut SeededRandom) -> Option<(usize, FolderImage)> {
        let all = self.changes.before(self.changes.len());
        let commits = all.iter().enumerate().skip(self.before);
        let commits = commits.filter_map(|(at, (_, change))| match change {
            DiskChange::Write {
                file,
                at: begin,
                bytes,
            } if self.is_journal(*file) => {
                let inside: Vec<_> = sectors(*begin, bytes).skip(1).collect();
                let (_, inside) = inside.split_last()?;
                // Take only sectors of printable text, because they lie inside a value. If a lost
                // sector contained the beginning of an item, the store would take the sector's
                // zeros for the end of the log.
                let lost = inside
                    .iter()
                    .filter(|(_, sector)| sector.iter().all(|byte| (b'\n'..=b'~').contains(byte)));
                let lost: Vec<_> = lost.copied().collect();
                (!lost.is_empty()).then_some((at, *file, lost))
            }
            _ => None,
        });
        let mut commits: Vec<_> = commits.collect();
        let (at, file, mut sectors) = dice.take(&mut commits)?;
        let (begin, sector) = dice.take(&mut sectors)?;
        let mut image = self.changes.whole(at + 1);
        let name = format!("/{}", self.names[file.0]);
        let mut files = image.0.iter_mut().filter(|(path, _)| path.ends_with(&name));
        files
            .next()?
            .1
            .as_mut()?
            .write(begin, &vec![0; sector.len()]);
        Some((at + 1, image))
    }

    fn is_journal(&self, file: FileNodeId) -> bool {
        self.names[file.0].ends_with(".jnl")
    }

    /// Returns the rows that a power cut after this many changes must not lose. Such rows were
    /// durable when a commit was written, and the commit was durable before the cut.
    pub(super) fn promised(&self, cut: usize, rows: &str) -> Vec<u8> {
        let name = |node: &FileNodeId| self.names[node.0].as_str();
        let mut content = FileContent::default();
        let mut lengths: Vec<(usize, u64)> = Vec::new();
        let mut offered: Vec<(usize, u64)> = Vec::new();
        let (mut synced, mut promised) = (0, 0);
        let until = |list: &[(usize, u64)], begun: usize| {
            let before = list.iter().rev().find(|(ended, _)| *ended < begun);
            before.map(|(_, length)| *length)
        };
        for (ended, change) in self.changes.before(cut) {
            match change {
                DiskChange::Write { file, at, bytes } if name(file) == rows => {
                    content.write(*at, bytes);
                    lengths.push((*ended, content.length()));
                }
                DiskChange::SetLength { file, length } if name(file) == rows => {
                    content.set_length(*length);
                    lengths.push((*ended, *length));
                    // Rows that the program itself removes by truncating the file were never
                    // committed.
                    synced = synced.min(*length);
                    promised = promised.min(*length);
                }
                DiskChange::Write { file, .. } if name(file).ends_with(".jnl") => {
                    offered.push((*ended, synced));
                }
                DiskChange::Sync { node, begun } if name(node) == rows => {
                    synced = until(&lengths, *begun).unwrap_or(synced);
                }
                DiskChange::Sync { node, begun } if name(node).ends_with(".jnl") => {
                    promised = until(&offered, *begun).unwrap_or(promised);
                }
                _ => {}
            }
        }
        content.set_length(promised);
        content.bytes().to_vec()
    }
}

/// A file or folder in its current state.
struct FileNode {
    name: String,
    length: u64,
    /// The entries of a folder; `None` for a file.
    entries: Option<BTreeMap<String, FileNodeId>>,
}

impl FileNode {
    fn new(name: &str, is_folder: bool) -> FileNode {
        FileNode {
            name: name.to_owned(),
            length: 0,
            entries: is_folder.then(BTreeMap::new),
        }
    }
}

/// An open file, which several descriptors may share.
#[derive(Clone)]
struct OpenFile {
    path: PathBuf,
    /// The file; `None` if it is outside the recorded folder.
    node: Option<FileNodeId>,
    position: u64,
    appends: bool,
}

struct RecordingReader<'a> {
    within: &'a Path,
    name: &'a str,
    changes: DiskChangeLog,
    nodes: Vec<FileNode>,
    /// For each descriptor, the index of its open file in `files`.
    open: HashMap<u64, usize>,
    files: Vec<OpenFile>,
}

impl RecordingReader<'_> {
    /// Records the files that existed before the run as durable.
    fn begin(&mut self, before: &FolderImage) -> Result<()> {
        for (path, content) in &before.0 {
            let node = self.make(Path::new(path), content.is_none(), 0)?;
            let Some(content) = content else { continue };
            self.nodes[node.0].length = content.length();
            let bytes = content.bytes().to_vec();
            self.changes.push(
                0,
                DiskChange::Write {
                    file: node,
                    at: 0,
                    bytes,
                },
            );
            let length = content.length();
            self.changes
                .push(0, DiskChange::SetLength { file: node, length });
        }
        for node in (0..self.nodes.len()).map(FileNodeId) {
            self.changes.push(0, DiskChange::Sync { node, begun: 1 });
        }
        Ok(())
    }

    fn take(&mut self, call: &SystemCall<'_>) -> Result<()> {
        match call.name {
            // `open` and `creat` are obsolete, but an allocator uses `open` to read the system's
            // memory information.
            "open" | "creat" => {
                self.unknown(call)?;
                self.open.remove(&call.result);
                Ok(())
            }
            "openat" => self.open(call),
            "close" => {
                self.open.remove(&call.number(0)?);
                Ok(())
            }
            "dup" | "dup2" | "dup3" => self.duplicate(call),
            "fcntl" if call.arg(1).starts_with("F_DUPFD") => self.duplicate(call),
            "fcntl" => Ok(()),
            "lseek" => self.move_to(call, |_| call.result),
            "read" | "readv" => self.move_to(call, |position| position + call.result),
            "write" | "writev" | "pwrite64" => self.write(call),
            "ftruncate" => self.set_length(call),
            "fsync" | "fdatasync" => self.sync(call),
            "mkdir" | "mkdirat" => match self.path(call, 0)? {
                Some(path) => self.make(&path, true, call.ended).map(drop),
                None => Ok(()),
            },
            "rename" | "renameat" | "renameat2" => self.rename(call),
            "unlink" | "unlinkat" | "rmdir" => self.unlink(call),
            "mmap" if !(call.has(2, "PROT_WRITE") && call.has(3, "MAP_SHARED")) => Ok(()),
            _ => self.unknown(call),
        }
    }

    /// Fails if a call may change a tracked file in an unsupported way.
    fn unknown(&self, call: &SystemCall<'_>) -> Result<()> {
        let by_number = call.numbers().any(|number| self.node(number).is_some());
        let mut by_name = false;
        for at in 0..call.texts()?.len() {
            by_name |= self.path(call, at)?.is_some();
        }
        match by_number || by_name {
            true => bail!("a call that the recording does not follow"),
            false => Ok(()),
        }
    }

    fn node(&self, number: u64) -> Option<FileNodeId> {
        self.files[*self.open.get(&number)?].node
    }

    fn open(&mut self, call: &SystemCall<'_>) -> Result<()> {
        let number = call.result;
        let Some(text) = call.texts()?.into_iter().next() else {
            bail!("no path");
        };
        let full = self.full(call.arg(0), &text)?;
        let mut node = None;
        if let Some(path) = self.inside(&full) {
            node = self.find(&path);
            if call.has(2, "O_TMPFILE") {
                bail!("a file without a name");
            }
            if node.is_none() && call.has(2, "O_CREAT") {
                node = Some(self.make(&path, false, call.ended)?);
            } else if let Some(file) = node.filter(|_| call.has(2, "O_TRUNC")) {
                self.nodes[file.0].length = 0;
                let change = DiskChange::SetLength { file, length: 0 };
                self.changes.push(call.ended, change);
            }
        }
        self.files.push(OpenFile {
            path: full,
            node,
            position: 0,
            appends: call.has(2, "O_APPEND"),
        });
        self.open.insert(number, self.files.len() - 1);
        Ok(())
    }

    fn duplicate(&mut self, call: &SystemCall<'_>) -> Result<()> {
        let file = self.open.get(&call.number(0)?).copied();
        match file {
            Some(file) => self.open.insert(call.result, file),
            None => self.open.remove(&call.result),
        };
        Ok(())
    }

    fn move_to(&mut self, call: &SystemCall<'_>, to: impl Fn(u64) -> u64) -> Result<()> {
        if let Some(file) = self.open.get(&call.number(0)?) {
            let file = &mut self.files[*file];
            file.position = to(file.position);
        }
        Ok(())
    }

    fn write(&mut self, call: &SystemCall<'_>) -> Result<()> {
        let number = call.number(0)?;
        let Some(file) = self.node(number) else {
            return Ok(());
        };
        let length = self.nodes[file.0].length;
        let open = &mut self.files[self.open[&number]];
        let at = match call.name {
            "pwrite64" => call.last_number()?,
            _ if open.appends => length,
            _ => open.position,
        };
        let bytes = call.written()?;
        let end = at + bytes.len() as u64;
        if call.name != "pwrite64" {
            open.position = end;
        }
        self.nodes[file.0].length = length.max(end);
        self.changes
            .push(call.ended, DiskChange::Write { file, at, bytes });
        Ok(())
    }

    fn set_length(&mut self, call: &SystemCall<'_>) -> Result<()> {
        let length = call.number(1)?;
        if let Some(file) = self.node(call.number(0)?) {
            self.nodes[file.0].length = length;
            self.changes
                .push(call.ended, DiskChange::SetLength { file, length });
        }
        Ok(())
    }

    fn sync(&mut self, call: &SystemCall<'_>) -> Result<()> {
        if let Some(node) = self.node(call.number(0)?) {
            let begun = call.begun;
            self.changes
                .push(call.ended, DiskChange::Sync { node, begun });
        }
        Ok(())
    }

    fn rename(&mut self, call: &SystemCall<'_>) -> Result<()> {
        let (Some(from), Some(to)) = (self.path(call, 0)?, self.path(call, 1)?) else {
            return self.unknown(call);
        };
        // Skip sockets and the like, which are not tracked.
        let Some(node) = self.take_entry(&from)? else {
            return Ok(());
        };
        let (from, to) = (self.place(&from)?, self.place(&to)?);
        self.entries(to.0)?.insert(to.1.clone(), node);
        self.changes
            .push(call.ended, DiskChange::Rename { from, to, node });
        Ok(())
    }

    fn unlink(&mut self, call: &SystemCall<'_>) -> Result<()> {
        let Some(path) = self.path(call, 0)? else {
            return Ok(());
        };
        if self.take_entry(&path)?.is_some() {
            let (folder, name) = self.place(&path)?;
            self.changes
                .push(call.ended, DiskChange::Unlink { folder, name });
        }
        Ok(())
    }

    /// Creates a file or folder.
    fn make(&mut self, path: &Path, is_folder: bool, ended: usize) -> Result<FileNodeId> {
        let (folder, name) = self.place(path)?;
        let node = FileNodeId(self.nodes.len());
        if is_folder {
            self.changes.add_folder(node);
        }
        self.nodes.push(FileNode::new(&name, is_folder));
        self.entries(folder)?.insert(name.clone(), node);
        self.changes
            .push(ended, DiskChange::Link { folder, name, node });
        Ok(node)
    }

    fn take_entry(&mut self, path: &Path) -> Result<Option<FileNodeId>> {
        let (folder, name) = self.place(path)?;
        Ok(self.entries(folder)?.remove(&name))
    }

    /// Returns the folder of a path, and the name in it.
    fn place(&self, path: &Path) -> Result<(FileNodeId, String)> {
        let folder = self.find(path.parent().context("no folder")?);
        let name = path.file_name().context("no name")?;
        let folder = folder.context("its folder is not known")?;
        Ok((folder, name.to_string_lossy().into_owned()))
    }

    fn entries(&mut self, folder: FileNodeId) -> Result<&mut BTreeMap<String, FileNodeId>> {
        let entries = self.nodes[folder.0].entries.as_mut();
        entries.context("a file is no folder")
    }

    /// Returns the file or folder with this path, relative to `within`.
    fn find(&self, path: &Path) -> Option<FileNodeId> {
        path.components().try_fold(ROOT, |folder, part| {
            let name = part.as_os_str().to_string_lossy();
            let entries = self.nodes[folder.0].entries.as_ref()?;
            entries.get(name.as_ref()).copied()
        })
    }

    /// Returns the n-th path of a call, relative to `within`. `None` if the path is outside
    /// `within`.
    fn path(&self, call: &SystemCall<'_>, at: usize) -> Result<Option<PathBuf>> {
        let texts = call.texts()?;
        let text = texts.get(at).context("no path")?;
        // The folder that a path is relative to comes directly before the path, as a descriptor.
        let quoted = call.args().position(|arg| arg.starts_with('"'));
        let folder = match call.name {
            "mkdirat" | "unlinkat" | "renameat" | "renameat2" | "linkat" => {
                call.arg(quoted.unwrap_or(1).saturating_sub(1) + 2 * at)
            }
            _ => "AT_FDCWD",
        };
        Ok(self.inside(&self.full(folder, text)?))
    }

    /// Returns an absolute path.
    fn full(&self, folder: &str, text: &[u8]) -> Result<PathBuf> {
        let text = PathBuf::from(str::from_utf8(text)?);
        let base = match folder.parse() {
            Ok(number) => {
                let file = self.open.get(&number);
                file.map_or(PathBuf::from("/unknown"), |at| self.files[*at].path.clone())
            }
            Err(_) => self.within.to_owned(),
        };
        let mut full = PathBuf::new();
        for part in base.join(text).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    full.pop();
                }
                part => full.push(part),
            }
        }
        Ok(full)
    }

    fn inside(&self, full: &Path) -> Option<PathBuf> {
        let path = full.strip_prefix(self.within).ok()?;
        let is_ours = path.starts_with(self.name) || path.as_os_str().is_empty();
        is_ours.then(|| path.to_owned())
    }
}
