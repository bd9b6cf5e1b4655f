//! The settings of a crawl: one definition for flags, configuration keys, defaults,
//! help and the listing that `crawl config` prints.
//!
//! A [`Layer`] holds what one source says (command line, file, built in: any part of
//! it), [`Settings`] what is in force once all layers are laid over each other.

mod access;
mod check;
mod file;
mod groups;
mod listing;
mod mark;
#[cfg(test)]
mod page;
mod reach;
mod remembered;
mod roots;
mod sites;
mod sources;
mod values;

pub(crate) use check::{
    Checked, check, check_agent, check_contact, contact_mail, no_contact, user_agent,
};
pub(crate) use groups::{
    ForbiddenName, Layer, ProfileName, ProgressMode, PurposeName, ResourcesName, ScopeName,
    Settings, WhenName,
};
pub(crate) use listing::{
    NAME_AND_VERSION, default_of, defaults_listing, effective, first_start, mark_of, record,
    rules_since,
};
pub(crate) use reach::{Reach, reach};
pub(crate) use remembered::own_mark;
pub(crate) use sites::hours;
pub(crate) use sources::{Surroundings, gather, host_locks_file, user_contact};
pub(crate) use values::{CONTACT_HINT, read_contact};
