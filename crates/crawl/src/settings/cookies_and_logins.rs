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
use ring::digest::{SHA256, digest};

use super::host_credentials::HostCredentialSettings;
use super::login_settings::LoginTransportSecurity;
use super::sites::SiteSettingsByName;
use crate::error::{CommandError, ErrorCollector};
use crate::values::FilePath;

/// Maximum size of a `cookies.txt`, in bytes.
/// Beyond the limit: refused.
const MAX_COOKIE_FILE_BYTES: u64 = 1 << 20;

/// Returns the sessions of all sites that keep cookies or need a login, and the logins.
///
/// # Errors
/// All problems found.
pub(super) fn sessions(
    sites: &SiteSettingsByName,
    is_proxied: bool,
) -> Result<(SiteSessions, Vec<Arc<SiteLogin>>), CommandError> {
    let mut problems = ErrorCollector::default();
    let mut logins = Vec::new();
    let keeping = sites
        .iter()
        .filter(|(_, terms)| terms.access.keeps_cookies());
    let names: Vec<_> = keeping
        .map(|(site, terms)| (canonical_name(site), terms.access.allows_plain_http()))
        .collect();
    // If a name is unusable, continue without sessions, because `sites::by_name` reports the name.
    let sessions = SiteSessions::new(
        names
            .iter()
            .map(|(name, plain_http)| (&**name, *plain_http)),
    );
    let sessions = sessions.unwrap_or_default();
    for (site, terms) in sites {
        let Some(login) = &terms.access.login else {
            continue;
        };
        let name = canonical_name(site);
        let channel = LoginTransportSecurity {
            plain_http: terms.access.allows_plain_http(),
            is_proxied,
        };
        let made = login.login(&name, channel);
        let made = made.and_then(
            |made| match contradiction(&name, &terms.access, &sessions) {
                None => Ok(made),
                Some(problem) => Err(problem),
            },
        );
        match made {
            Ok(login) => logins.push(Arc::new(login)),
            Err((key, why)) => {
                let message = format!("unusable `{key}` in [site.\"{site}\".login]: {why}");
                let problem = CommandError::usage(message)
                    .hint("docs/secrets.md has an example of each kind of login");
                problems.note::<()>(Err(problem.about("login").about_site(site)));
            }
        }
    }
    problems.or((sessions, logins))
}

/// Returns the key of a login that conflicts with other settings, and the reason.
fn contradiction(
    site: &str,
    access: &HostCredentialSettings,
    sessions: &SiteSessions,
) -> Option<(&'static str, String)> {
    let login = access.login.as_ref()?;
    if let Some(header) = login.token_header()
        && access.sets(header)
    {
        let reason = format!("the table sets `{header}` too, and the token would replace it");
        return Some(("credential-header", reason));
    }
    let form = login.form()?;
    let owner = sessions.site_of(&form.host_key())?;
    (owner != site).then(|| {
        let reason = format!(
            "`{form}` belongs to [site.\"{owner}\"], which has a session of its own; move the login \
             there"
        );
        ("form", reason)
    })
}

/// Returns a warning for each login with neither `logged-in` nor `logged-out`: without these signs,
/// a page's content can't show that the session is over.
pub(crate) fn login_warnings(logins: &[Arc<SiteLogin>]) -> Vec<String> {
    let without_signs = logins.iter().filter(|login| !login.has_signs());
    let warnings = without_signs.map(|login| {
        format!(
            "[site.\"{}\".login] has neither `logged-in` nor `logged-out`: only a 401 or a redirect \
             to the form shows that a session is over",
            login.site
        )
    });
    warnings.collect()
}

/// Returns the name of a `[site]` table as host tables store it, in lower case and Punycode.
fn canonical_name(site: &str) -> Cow<'_, str> {
    let has_port = host_and_port(site).1.is_some();
    match HostKey::parse(site) {
        Ok(key) if has_port => Cow::Owned(key.as_str().to_owned()),
        Ok(key) => Cow::Owned(key.host().to_owned()),
        // Keep an unusable name here, because `sites::by_name` reports it.
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
    let digest = HEXLOWER.encode(digest(&SHA256, text.as_bytes()).as_ref());
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
