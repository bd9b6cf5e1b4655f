//! The possible states of a disk after a power cut, given the changes that a program made and
//! synced.
//!
//! A change is durable if a sync of its file or folder began after the change and ended before the
//! cut. Any other change may be lost. A file may lose all bytes from some point on, or any of its
//! sectors. An entry of a folder may be lost even if the file that it names was synced.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::super::random::SeededRandom;

/// Bytes that a disk writes atomically.
const SECTOR_BYTES: usize = 512;

/// A file or folder, identified by a number that stays the same if it is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileNodeId(pub(super) usize);

/// The parent folder of the recorded folder.
pub(super) const ROOT: FileNodeId = FileNodeId(0);

/// A change of a file or folder, or a sync that makes earlier changes durable.
#[derive(Debug)]
pub(super) enum DiskChange {
    Write {
        file: FileNodeId,
        at: u64,
        bytes: Vec<u8>,
    },
    SetLength {
        file: FileNodeId,
        length: u64,
    },
    Link {
        folder: FileNodeId,
        name: String,
        node: FileNodeId,
    },
    Unlink {
        folder: FileNodeId,
        name: String,
    },
    Rename {
        from: (FileNodeId, String),
        to: (FileNodeId, String),
        node: FileNodeId,
    },
    /// Changes of this file, or of this folder's entries, that ended before `begun` are durable.
    Sync {
        node: FileNodeId,
        begun: usize,
    },
}

/// All changes of the recorded files and folders, each with the line of the trace where it ended.
#[derive(Default)]
pub(super) struct DiskChangeLog {
    list: Vec<(usize, DiskChange)>,
    folders: HashSet<FileNodeId>,
}

/// The files and folders below a folder, at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FolderImage(pub(super) BTreeMap<String, Option<FileContent>>);

/// The content of a file: `bytes`, followed by zeros up to `length`. The zeros are not in memory,
/// because the store allocates long journals before it fills them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileContent {
    bytes: Vec<u8>,
    length: u64,
}

impl DiskChangeLog {
    pub(super) fn new() -> DiskChangeLog {
        DiskChangeLog {
            list: Vec::new(),
            folders: HashSet::from([ROOT]),
        }
    }

    pub(super) fn push(&mut self, ended: usize, change: DiskChange) {
        self.list.push((ended, change));
    }

    pub(super) fn add_folder(&mut self, node: FileNodeId) {
        self.folders.insert(node);
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn before(&self, cut: usize) -> &[(usize, DiskChange)] {
        &self.list[..cut.min(self.list.len())]
    }

    /// Returns the files after all changes, on a disk that loses nothing.
    pub(super) fn end(&self) -> FolderImage {
        self.whole(self.list.len())
    }

    /// Returns the files after the first `cut` changes, on a disk that loses nothing.
    pub(super) fn whole(&self, cut: usize) -> FolderImage {
        self.held(cut, None)
    }

    /// Draws files that may be left if the power was cut after the first `cut` changes.
    pub(super) fn image(&self, cut: usize, dice: &mut SeededRandom) -> FolderImage {
        self.held(cut, Some(dice))
    }

    fn held(&self, cut: usize, mut dice: Option<&mut SeededRandom>) -> FolderImage {
        let changes = self.before(cut);
        let mut synced: HashMap<FileNodeId, usize> = HashMap::new();
        for (_, change) in changes {
            if let DiskChange::Sync { node, begun } = change {
                let last_sync = synced.entry(*node).or_default();
                *last_sync = (*last_sync).max(*begun);
            }
        }
        let is_synced =
            |node: &FileNodeId, ended: usize| synced.get(node).is_some_and(|at| ended < *at);
        let entries = entries(changes, is_synced, dice.as_deref_mut());
        let mut files: BTreeMap<FileNodeId, Vec<(bool, &DiskChange)>> = BTreeMap::new();
        for (ended, change) in changes {
            if let DiskChange::Write { file, .. } | DiskChange::SetLength { file, .. } = change {
                let is_safe = is_synced(file, *ended);
                files.entry(*file).or_default().push((is_safe, change));
            }
        }
        let mut image = FolderImage::default();
        let mut folders = vec![(String::new(), ROOT)];
        while let Some((path, folder)) = folders.pop() {
            for (name, node) in entries.get(&folder).into_iter().flatten() {
                let path = match path.as_str() {
                    "" => name.clone(),
                    above => format!("{above}/{name}"),
                };
                let content = match self.folders.contains(node) {
                    true => {
                        folders.push((path.clone(), *node));
                        None
                    }
                    false => {
                        let changes = files.get(node).map_or(&[][..], Vec::as_slice);
                        Some(content(changes, dice.as_deref_mut()))
                    }
                };
                image.0.insert(path, content);
            }
        }
        image
    }
}

/// The fate of the unsynced changes of a file or folder: none, all, or some reach the disk.
enum UnsyncedFate {
    None,
    All,
    /// Only this many changes, counted from the first one.
    First(usize),
    /// Each change and each sector of a write, with this probability in percent.
    Some(u64),
}

impl UnsyncedFate {
    /// Draws which of `count` changes reach the disk. Without `dice`, all of them do.
    fn draw(count: usize, dice: Option<&mut SeededRandom>) -> UnsyncedFate {
        let Some(dice) = dice else {
            return UnsyncedFate::All;
        };
        match dice.below(6) {
            0 => UnsyncedFate::None,
            1 => UnsyncedFate::All,
            2 | 3 => UnsyncedFate::First(dice.below(count as u64 + 1) as usize),
            _ => UnsyncedFate::Some([0, 50, 90][dice.below(3) as usize]),
        }
    }

    fn keeps(&self, at: usize, dice: Option<&mut SeededRandom>) -> bool {
        match self {
            UnsyncedFate::None => false,
            UnsyncedFate::All => true,
            UnsyncedFate::First(count) => at < *count,
            UnsyncedFate::Some(percent) => dice.is_some_and(|dice| dice.below(100) < *percent),
        }
    }
}

type Entries = HashMap<FileNodeId, BTreeMap<String, FileNodeId>>;

/// Returns the entries of all folders after the cut. Without `dice`, no change is lost.
fn entries(
    changes: &[(usize, DiskChange)],
    is_synced: impl Fn(&FileNodeId, usize) -> bool,
    mut dice: Option<&mut SeededRandom>,
) -> Entries {
    let mut unsafe_ones: BTreeMap<FileNodeId, Vec<usize>> = BTreeMap::new();
    for (at, (ended, change)) in changes.iter().enumerate() {
        let (folder, is_safe) = match change {
            DiskChange::Link { folder, .. } | DiskChange::Unlink { folder, .. } => {
                (folder, is_synced(folder, *ended))
            }
            DiskChange::Rename { from, to, .. } => (
                &to.0,
                is_synced(&from.0, *ended) || is_synced(&to.0, *ended),
            ),
            _ => continue,
        };
        if !is_safe {
            unsafe_ones.entry(*folder).or_default().push(at);
        }
    }
    let mut lost = HashSet::new();
    for all in unsafe_ones.values() {
        let fate = UnsyncedFate::draw(all.len(), dice.as_deref_mut());
        for (at, change) in all.iter().enumerate() {
            if !fate.keeps(at, dice.as_deref_mut()) {
                lost.insert(*change);
            }
        }
    }
    let mut entries = Entries::new();
    let survivors = changes.iter().enumerate();
    for (_, (_, change)) in survivors.filter(|(at, _)| !lost.contains(at)) {
        match change {
            DiskChange::Link { folder, name, node } => {
                entries
                    .entry(*folder)
                    .or_default()
                    .insert(name.clone(), *node);
            }
            DiskChange::Unlink { folder, name } => {
                entries.entry(*folder).or_default().remove(name);
            }
            DiskChange::Rename { from, to, node } => {
                let old = entries.entry(from.0).or_default();
                if old.get(&from.1) == Some(node) {
                    old.remove(&from.1);
                }
                entries.entry(to.0).or_default().insert(to.1.clone(), *node);
            }
            _ => {}
        }
    }
    entries
}

/// Returns the content of a file after the cut, given its changes. The flag of each change is true
/// if the change is durable. Without `dice`, no change is lost.
fn content(changes: &[(bool, &DiskChange)], mut dice: Option<&mut SeededRandom>) -> FileContent {
    let mut content = FileContent::default();
    let count = changes.iter().filter(|(is_safe, _)| !is_safe).count();
    let fate = UnsyncedFate::draw(count, dice.as_deref_mut());
    let mut unsafe_before = 0;
    for (is_safe, change) in changes {
        let at = unsafe_before;
        unsafe_before += usize::from(!is_safe);
        let (begin, bytes) = match change {
            DiskChange::Write { at, bytes, .. } => (*at, bytes),
            // If sectors reach the disk one by one, the length of the file has reached the disk as
            // well.
            DiskChange::SetLength { length, .. }
                if *is_safe || matches!(fate, UnsyncedFate::Some(_)) || fate.keeps(at, None) =>
            {
                content.set_length(*length);
                continue;
            }
            _ => continue,
        };
        match &fate {
            UnsyncedFate::Some(_) if !is_safe => {
                content.grow(begin + bytes.len() as u64);
                for (begin, sector) in sectors(begin, bytes) {
                    if fate.keeps(at, dice.as_deref_mut()) {
                        content.write(begin, sector);
                    }
                }
            }
            UnsyncedFate::First(whole) if !is_safe && at == *whole => {
                // The power failed during this write, so keep only its first sectors.
                let count = sectors(begin, bytes).count() as u64;
                let sector_count = dice.as_deref_mut().map_or(0, |dice| dice.below(count));
                for (begin, sector) in sectors(begin, bytes).take(sector_count as usize) {
                    content.write(begin, sector);
                }
            }
            fate if *is_safe || fate.keeps(at, None) => content.write(begin, bytes),
            _ => {}
        }
    }
    content.without_zeros()
}

/// Splits a write into pieces of one sector each.
pub(super) fn sectors(begin: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut begin = begin;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let room = SECTOR_BYTES - (begin % SECTOR_BYTES as u64) as usize;
        let (sector, after) = rest.split_at(room.min(rest.len()));
        let sector_at = (!sector.is_empty()).then_some((begin, sector));
        begin += sector.len() as u64;
        rest = after;
        sector_at
    })
}

impl FileContent {
    pub(super) fn of(bytes: Vec<u8>) -> FileContent {
        let length = bytes.len() as u64;
        FileContent { bytes, length }.without_zeros()
    }

    /// Returns the bytes without trailing zeros.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn set_length(&mut self, length: u64) {
        self.bytes.truncate(length as usize);
        self.length = length;
    }

    fn grow(&mut self, length: u64) {
        self.length = self.length.max(length);
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        let (begin, end) = (at as usize, at as usize + bytes.len());
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[begin..end].copy_from_slice(bytes);
        self.grow(end as u64);
    }

    fn without_zeros(mut self) -> FileContent {
        let end = self.bytes.iter().rposition(|byte| *byte != 0);
        self.bytes.truncate(end.map_or(0, |at| at + 1));
        self
    }
}

impl FolderImage {
    /// Reads the files in `folder` on this machine's disk into an image, where the folder is called
    /// `name`.
    pub(super) fn read(folder: &Path, name: &str) -> Result<FolderImage> {
        let mut image = FolderImage(BTreeMap::from([(name.to_owned(), None)]));
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            if kind.is_dir() {
                image.0.extend(FolderImage::read(&path, &name)?.0);
            } else if kind.is_file() {
                image
                    .0
                    .insert(name, Some(FileContent::of(fs::read(&path)?)));
            }
        }
        Ok(image)
    }

    /// Writes all files below a folder.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        for (name, content) in &self.0 {
            let path = folder.join(name);
            let Some(content) = content else {
                fs::create_dir_all(&path)?;
                continue;
            };
            let mut file = File::create(&path).with_context(|| path.display().to_string())?;
            file.write_all(&content.bytes)?;
            file.set_len(content.length)?;
        }
        Ok(())
    }

    /// Returns an error that names the first difference between this image and `other`, if there is
    /// one.
    pub(super) fn ensure_same(&self, other: &FolderImage) -> Result<()> {
        for name in self.0.keys().chain(other.0.keys()) {
            ensure!(self.0.get(name) == other.0.get(name), "{name} differs");
        }
        Ok(())
    }
}
