//! Checked options of `crawl serve`.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use axum::http::HeaderValue;
use crawl_weburl::canonicalize;

use super::control_token::ControlTokenDigest;
use crate::child_process_without_secrets::TOKEN_VARIABLE;
use crate::cli::args::ServeArgs;
use crate::error::CommandError;
use crate::values::ListenAddress;

/// Maximum characters of a title, which is shown on one line.
const MAX_TITLE_CHARS: usize = 200;

/// Settings of the server.
#[derive(Clone, Debug)]
pub(crate) struct ServeOptions {
    /// The crawl's directory.
    pub(crate) dir: PathBuf,
    /// The file of search rules of `--search-rules`.
    pub(crate) search_rules: Option<PathBuf>,
    /// The address to listen on.
    pub(crate) listen: SocketAddr,
    /// The token that authorizes control of the crawl, if one is set.
    pub(crate) token: Option<ControlTokenDigest>,
    /// Origins whose pages may read search results.
    pub(crate) origins: Vec<HeaderValue>,
    /// Requests per second from each client.
    pub(crate) rate: NonZeroU32,
    /// The title of the search page. `None` if it is derived from the first host of the index.
    pub(crate) title: Option<String>,
    /// Whether clients connect through a reverse proxy.
    pub(crate) behind_proxy: bool,
}

impl ServeOptions {
    /// Checks the arguments. `token` is the token in the environment.
    pub(crate) fn of(args: &ServeArgs, token: Option<&str>) -> Result<ServeOptions, CommandError> {
        let listen = args.listen.parse::<ListenAddress>();
        let listen = listen.map_err(|_| {
            CommandError::usage(format!("can't listen on `{}`: not an address", args.listen))
                .hint("give an IP and a port, as in `127.0.0.1:8787` or `[::1]:8787`")
        })?;
        let listen = listen.0.ok_or_else(|| {
            CommandError::usage("--listen is empty").hint("it looks like `127.0.0.1:8787`")
        })?;
        let token = match (&args.token_file, token) {
            (Some(path), _) => Some(ControlTokenDigest::of_file(path)?),
            (None, Some(text)) => Some(ControlTokenDigest::of_text(
                text,
                &format!("`{TOKEN_VARIABLE}`"),
            )?),
            (None, None) => None,
        };
        if token.is_none() && !listen.ip().is_loopback() {
            return Err(CommandError::usage(format!(
                "other machines could reach `--listen {}`, but there is no token",
                args.listen
            ))
            .hint(format!(
                "add --token-file FILE or set {TOKEN_VARIABLE}, or listen on 127.0.0.1 behind a \
                 reverse proxy"
            )));
        }
        let origins = args.allow_origin.iter().map(|origin| checked(origin));
        Ok(ServeOptions {
            dir: args.dir.clone(),
            search_rules: args.search_rules.clone(),
            listen,
            token,
            origins: origins.collect::<Result<_, _>>()?,
            rate: NonZeroU32::new(args.rate).ok_or_else(|| {
                CommandError::usage("--rate is 0, so no requests would be answered").hint(
                    "remove --rate for 20 requests a second; for no limit, set a large number",
                )
            })?,
            title: args.title.as_deref().map(title).transpose()?,
            behind_proxy: args.behind_proxy,
        })
    }
}

/// Parses an origin as browsers send it: scheme and host, with the port unless it is the default.
fn checked(text: &str) -> Result<HeaderValue, CommandError> {
    let refused = |hint: String| {
        CommandError::usage(format!("`--allow-origin {text}` isn't an origin")).hint(hint)
    };
    let url = canonicalize(None, text).map_err(|_| {
        refused("give a scheme and a host, as in `https://www.example.org`".to_owned())
    })?;
    let origin = url.origin();
    if text.trim_end_matches('/') != origin.as_str() {
        return Err(refused(format!(
            "use the form that browsers send, `{}`",
            origin.as_str()
        )));
    }
    HeaderValue::from_str(origin.as_str()).map_err(|_| refused("use ASCII".to_owned()))
}

fn title(text: &str) -> Result<String, CommandError> {
    let text = text.trim();
    let length = text.chars().count();
    if length == 0 || length > MAX_TITLE_CHARS || text.chars().any(char::is_control) {
        return Err(CommandError::usage(format!(
            "`--title` has {length} characters after trimming, or contains control characters"
        ))
        .hint(format!(
            "give one line of 1 to {MAX_TITLE_CHARS} characters"
        )));
    }
    Ok(text.to_owned())
}
