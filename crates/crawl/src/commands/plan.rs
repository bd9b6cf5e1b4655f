//! `crawl plan`: reports what a crawl would cost its hosts.

use std::path::Path;

use crate::error::{CommandError, FINISHED, INTERRUPTED, NEGATIVE_RESULT};
use crate::output_file::write_file;
use crate::run::plan;
use crate::settings::Settings;
use crate::terminal::{note, print, print_json};

pub(crate) fn run(
    settings: &Settings,
    as_json: bool,
    html: Option<&Path>,
) -> Result<u8, CommandError> {
    let Some(plan) = plan(settings)? else {
        note("interrupted; there is no plan");
        return Ok(INTERRUPTED);
    };
    let printed = match html {
        Some(path) => {
            write_file(path, plan.to_html())?;
            FINISHED
        }
        None if as_json => print_json(&plan)?,
        None => print(plan.to_string().as_bytes())?,
    };
    Ok(match plan.hosts.iter().all(|host| host.waiting > 0) {
        true => NEGATIVE_RESULT,
        false => printed,
    })
}
