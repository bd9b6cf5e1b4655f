//! A disk that loses power, fills up or fails. It writes real files, and records how many bytes of
//! each were synced.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crawl_archive::DiskFaultInjector;

use super::RandomNumberGenerator;

/// The size of a sector in bytes. A disk writes only whole sectors.
const SECTOR: u64 = 512;
/// The error number of an operation on a full disk.
const ENOSPC: i32 = 28;
/// The error number of an operation that failed.
const EIO: i32 = 5;

/// The disk of a trial. Successive lives of the program write to the same files.
#[derive(Debug)]
pub(super) struct SimulatedDisk(Mutex<SimulatedDiskState>);

#[derive(Debug)]
struct SimulatedDiskState {
    dice: RandomNumberGenerator,
    /// The number of synced bytes of each file.
    synced: BTreeMap<PathBuf, u64>,
    /// The next fault, and the number of operations before it.
    left: Option<(u64, DiskFault)>,
    is_dead: bool,
}

/// A fault that begins at a randomly drawn operation of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskFault {
    /// The program dies in the middle of the operation.
    Death,
    /// The disk is full from then on, until the program ends.
    Full,
    /// Every operation fails from then on, until the program ends.
    Broken,
}

impl SimulatedDisk {
    pub(super) fn new(dice: RandomNumberGenerator) -> SimulatedDisk {
        SimulatedDisk(Mutex::new(SimulatedDiskState {
            dice,
            synced: BTreeMap::new(),
            left: None,
            is_dead: false,
        }))
    }

    fn state(&self) -> MutexGuard<'_, SimulatedDiskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a life of the program, with a fault after this number of operations.
    pub(super) fn begin(&self, fault: Option<(u64, DiskFault)>) {
        let mut state = self.state();
        (state.left, state.is_dead) = (fault, false);
    }

    /// Returns whether the program died in an operation.
    pub(super) fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    /// Returns how many bytes of a file were synced.
    pub(super) fn synced(&self, path: &Path) -> u64 {
        self.state().synced.get(path).copied().unwrap_or(0)
    }

    /// Cuts the power. Each file then keeps none of its unsynced bytes, their first part, or
    /// pieces with holes between them.
    pub(super) fn cut_power(&self) -> io::Result<()> {
        let mut state = self.state();
        let SimulatedDiskState { dice, synced, .. } = &mut *state;
        for (path, synced) in synced {
            let Ok(mut bytes) = fs::read(path) else {
                continue;
            };
            let length = bytes.len() as u64;
            if length <= *synced {
                continue;
            }
            let survivors = match dice.below(3) {
                0 => 0,
                1 => length - *synced,
                _ => dice.below(length - *synced),
            };
            if survivors == 0 && *synced == 0 && dice.chance(50) {
                fs::remove_file(path)?;
                continue;
            }
            bytes.truncate((*synced + survivors) as usize);
            let mut at = *synced as usize;
            while at < bytes.len() {
                let end = ((at as u64 / SECTOR + 1) * SECTOR).min(bytes.len() as u64) as usize;
                if dice.chance(30) {
                    bytes[at..end].fill(0);
                }
                at = end;
            }
            *synced = bytes.len() as u64;
            fs::write(path, bytes)?;
        }
        Ok(())
    }
}

impl SimulatedDiskState {
    /// Counts an operation on a file. Returns the error number if the operation fails.
    fn step(&mut self, path: &Path) -> Option<i32> {
        self.synced.entry(path.to_owned()).or_default();
        if self.is_dead {
            return Some(EIO);
        }
        let (left, fault) = self.left.as_mut()?;
        if *left > 0 {
            *left -= 1;
            return None;
        }
        match fault {
            DiskFault::Death => {
                self.is_dead = true;
                Some(EIO)
            }
            DiskFault::Full => Some(ENOSPC),
            DiskFault::Broken => Some(EIO),
        }
    }
}

impl DiskFaultInjector for SimulatedDisk {
    fn write(&self, path: &Path, length: usize) -> io::Result<usize> {
        let mut state = self.state();
        let was_dead = state.is_dead;
        let Some(error) = state.step(path) else {
            // Short writes are allowed at any time.
            let is_short = length > 1 && state.dice.chance(5);
            return Ok(match is_short {
                true => 1 + state.dice.below(length as u64 - 1) as usize,
                false => length,
            });
        };
        // The operation in which the program dies may write a part of the bytes.
        if state.is_dead && !was_dead {
            return Ok(state.dice.below(length as u64 + 1) as usize);
        }
        Err(io::Error::from_raw_os_error(error))
    }

    fn cut(&self, path: &Path, length: u64) -> io::Result<()> {
        let mut state = self.state();
        // Truncating a file succeeds even on a full disk.
        match state.step(path) {
            Some(error) if error != ENOSPC => return Err(io::Error::from_raw_os_error(error)),
            _ => {}
        }
        if let Some(synced) = state.synced.get_mut(path) {
            *synced = (*synced).min(length);
        }
        Ok(())
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        match state.step(path) {
            Some(error) if error != ENOSPC => return Err(io::Error::from_raw_os_error(error)),
            _ => {}
        }
        let length = fs::metadata(path)?.len();
        state.synced.insert(path.to_owned(), length);
        Ok(())
    }
}
