//! The program as a user meets it: flags, files, messages, exit codes.

mod config;
mod flags;
mod harness;
mod help;
mod inspect;
mod job;
mod records;
mod refusals;
mod robots;
