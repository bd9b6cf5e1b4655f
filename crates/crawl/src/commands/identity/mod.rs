//! `crawl identity`: keys, their publication, and the verification of signed requests.

mod check_published_keys;
mod combined_log_format;
mod crawler_about_page;
mod log_line;
mod logged_request;
mod logged_signature_counts;
mod new;
mod verify;
mod write_key_directory;

use crate::cli::identity::{CrawlerIdentityArgs, IdentityArgs, IdentityCommand};
use crate::error::CommandError;
use crate::settings::{Settings, SettingsLayer, UserFolders, gather};
use crate::values::DurationSetting;

pub(crate) fn run(args: IdentityArgs) -> Result<u8, CommandError> {
    match args.command {
        IdentityCommand::New {
            signature_key,
            start_in,
        } => new::run(&signature_key, start_in.map(DurationSetting::get)),
        IdentityCommand::Directory { out, who } => write_key_directory::run(&out, &settings(who)?),
        IdentityCommand::Check { who } => check_published_keys::run(&settings(who)?),
        IdentityCommand::Verify {
            logs,
            keys,
            hosts,
            max_lifetime,
            clock_tolerance,
            json,
        } => verify::run(&verify::IdentityVerifyOptions {
            logs: &logs,
            keys: &keys,
            hosts: &hosts,
            max_lifetime,
            clock_tolerance,
            as_json: json,
        }),
        IdentityCommand::Page {
            out,
            ip_ranges,
            who,
        } => crawler_about_page::run(&out, ip_ranges.as_deref(), &settings(who)?),
    }
}

fn settings(who: CrawlerIdentityArgs) -> Result<Settings, CommandError> {
    let layer = SettingsLayer {
        operator: who.operator,
        ..SettingsLayer::default()
    };
    gather(layer, who.config.as_deref(), &UserFolders::of_process())
}
