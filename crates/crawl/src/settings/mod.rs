//! The settings of a crawl: one definition for flags, configuration keys, defaults, help and the
//! output of `crawl config`.
//!
//! A [`SettingsLayer`] holds the values of one source (command line, file, defaults), each optional.
//! [`Settings`] are the values in force after all layers are merged.

mod ca_files;
mod check;
mod choices;
mod config_file;
mod contact_and_pattern_checks;
mod cookies_and_logins;
#[cfg(test)]
mod docs_page;
mod extract_rules;
mod fastest_pace;
mod host_credentials;
mod host_groups;
mod host_lists;
mod host_network_class;
mod host_politeness;
mod link_check_defaults;
mod listed_seed;
mod login_settings;
mod number_checks;
mod own_file_marks;
mod placeholder_check;
#[cfg(feature = "search")]
mod reindex_filter;
mod replay_settings;
mod request_signing;
mod reread;
mod schema;
mod seed_list;
mod setting_definitions;
mod shared_crawl;
mod sites;
mod source_merging;
mod stored_config;
mod toml_output;
pub(crate) mod typed_seed;
mod user_folders;

pub(crate) use crate::values::IndexedDocumentTypes;
pub(crate) use ca_files::check_ca_files;
pub(crate) use check::{
    CheckedSettings, check, check_agent, check_contact, check_seed, check_without_seeds,
    default_output, no_contact, render_config,
};
pub(crate) use choices::{LogFormatChoice, ProfileName, ProgressMode, RenderName};
pub(crate) use config_file::rules_of_file;
#[cfg(any(test, fuzzing))]
pub(crate) use config_file::usable;
pub(crate) use config_file::{located, parse};
pub(crate) use contact_and_pattern_checks::{CONTACT_HINT, read_contact, user_agent};
pub(crate) use fastest_pace::fastest_pace;
pub(crate) use host_lists::{host_keys, host_table};
pub(crate) use host_network_class::{HostNetworkClass, reach};
pub(crate) use host_politeness::hours;
pub(crate) use link_check_defaults::{check_defaults, refuse_plain_crawl};
pub(crate) use listed_seed::ListedSeed;
pub(crate) use own_file_marks::{FileMarkCheckResult, MarkPurpose, sign, verify};
#[cfg(feature = "search")]
pub(crate) use reindex_filter::document_rules;
pub(crate) use replay_settings::{other_settings, replay_record, settings_digest};
pub(crate) use request_signing::key_url;
pub(crate) use reread::InitialSettingsLayers;
pub(crate) use schema::schema;
pub(crate) use setting_definitions::{Display, OperatorLayer, Settings, SettingsLayer};
#[cfg(feature = "shared-frontier")]
pub(crate) use shared_crawl::{check_name, frontier_of_file};
pub(crate) use shared_crawl::{shared_crawl, shared_settings};
pub(crate) use sites::{SiteSettings, budgets};
pub(crate) use source_merging::{
    gather, gather_for_replay, gather_over, gather_with_sources, user_contact,
};
#[cfg(feature = "shared-frontier")]
pub(crate) use stored_config::gathered_with_mark;
pub(crate) use stored_config::{own_mark, stored_with_rules, stored_without};
pub(crate) use toml_output::{
    NAME_AND_VERSION, audited, default_of, defaults_listing, effective, first_start, mark_of,
    record, record_again, stored_seeds, with_browser,
};
pub(crate) use user_folders::{UserFolders, host_locks_file};
