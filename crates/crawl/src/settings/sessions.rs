//! The sites that keep cookies or need a login, and the cookies of `--cookies`.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use crawl_engine::SiteLogin;
use crawl_fetcher::{CookieFile, SiteSessions};
use crawl_weburl::{HostKey, host_and_port};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use super::sites::Sites;
use crate::error::{CommandError, Problems};
use crate::values::FilePath;

/// Maximum size of a `cookies.txt`, in bytes.
/// Beyond the limit: refused.
const MAX_COOKIE_FILE_BYTES: u64 = 1 << 20;

/// Returns the sessions of all sites that keep cookies or need a login, and the logins.
///
/// # Errors
/// All problems found.
pub(super) fn sessions(sites: &Sites) -> Result<(SiteSessions, Vec<Arc<SiteLogin>>), CommandError> {
    let mut problems = Problems::default();
    let mut logins = Vec::new();
    let mut kept = Vec::new();
    for (site, terms) in sites {
        let name = canonical_name(site);
        let access = &terms.access;
        let plain_http = access.allows_plain_http();
        if access.keeps_cookies() {
            kept.push((name.to_string(), plain_http));
        }
        let Some(login) = &access.login else {
            continue;
        };
        match login.login(&name, plain_http) {
            Ok(login) => logins.push(Arc::new(login)),
            Err((key, why)) => {
                let message = format!("unusable `{key}` in [site.\"{site}\".login]: {why}");
                let problem = CommandError::usage(message)
                    .hint("docs/secrets.md has an example of each kind of login");
                problems.note::<()>(Err(problem.about("login").about_site(site)));
            }
        }
    }
    // Unusable names of sites are reported by `sites::by_name`.
    let sessions = SiteSessions::new(
        kept.iter()
            .map(|(name, plain_http)| (name.as_str(), *plain_http)),
    );
    let sessions = sessions.unwrap_or_default();
    problems.or((sessions, logins))
}

/// Returns the name of a `[site]` table as host tables store it, in lower case and Punycode.
fn canonical_name(site: &str) -> Cow<'_, str> {
    let has_port = host_and_port(site).1.is_some();
    match HostKey::parse(site) {
        Ok(key) if has_port => Cow::Owned(key.as_str().to_owned()),
        Ok(key) => Cow::Owned(key.host().to_owned()),
        // The name is reported where the tables are made.
        Err(_) => Cow::Borrowed(site),
    }
}

/// Reads the file of `--cookies`, and returns it with the digest of its contents. `None` if no file
/// is given.
///
/// # Errors
/// The file can't be read, a line is not a cookie, or no cookie belongs to a site that keeps
/// cookies.
pub(super) fn check_cookie_file(
    file: &FilePath,
    sessions: &SiteSessions,
) -> Result<Option<(CookieFile, String)>, CommandError> {
    if file.is_empty() {
        return Ok(None);
    }
    let shown = file.0.display();
    let unusable = |why: String| {
        CommandError::usage(format!("unusable --cookies `{shown}`: {why}"))
            .hint("give a Netscape cookies.txt, as browser add-ons, curl and wget write")
            .about("cookies")
    };
    let text = cookie_text(&file.0).map_err(unusable)?;
    let cookies = CookieFile::parse(&text).map_err(|why| unusable(why.to_string()))?;
    if !sessions.takes_any_of(&cookies) {
        let domains = cookies.domains();
        let example = domains.first().copied().unwrap_or("example.org");
        let message =
            format!("none of the cookies in --cookies `{shown}` belongs to a site that keeps them");
        let hint =
            format!("add `cookies = \"keep\"` to [site.\"{example}\"] in your settings file");
        return Err(CommandError::usage(message).hint(hint).about("cookies"));
    }
    let digest = HEXLOWER.encode(&Sha256::digest(text.as_bytes()));
    Ok(Some((cookies, digest)))
}

fn cookie_text(file: &Path) -> Result<String, String> {
    let text = |why: io::Error| why.to_string();
    if !fs::metadata(file).map_err(text)?.is_file() {
        return Err("it isn't a regular file".to_owned());
    }
    let mut cookies = String::new();
    let opened = File::open(file).map_err(text)?;
    let read = opened
        .take(MAX_COOKIE_FILE_BYTES + 1)
        .read_to_string(&mut cookies);
    read.map_err(text)?;
    match cookies.len() as u64 > MAX_COOKIE_FILE_BYTES {
        true => Err(format!("it is larger than {MAX_COOKIE_FILE_BYTES} bytes")),
        false => Ok(cookies),
    }
}
