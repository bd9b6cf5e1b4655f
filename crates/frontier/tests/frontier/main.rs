//! What holds for every frontier, and what holds for the one on disk.

mod bench;
mod conformance;
mod disk;
mod model;
mod threads;
