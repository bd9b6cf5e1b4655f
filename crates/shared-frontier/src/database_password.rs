//! The password for a database server: given by the caller, or from a password file.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::connection_string::ConnectionString;
use crate::error::SharedCrawlError;

/// Maximum size of a password file, in bytes.
const MAX_PASSWORD_FILE_BYTES: u64 = 1 << 20;
/// The mode bits that give other users access to a file.
const OTHERS: u32 = 0o077;

/// A password. Never shown in any output.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Vec<u8>);

impl Password {
    /// Creates a password from its bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Password {
        Password(bytes.into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// The sources of the password for a connection string that has none.
#[derive(Clone, Debug, Default)]
pub struct PasswordSources {
    /// The password.
    pub password: Option<Password>,
    /// The password file (in libpq's format) to search if `password` is `None`. Only its owner may
    /// have access to it.
    pub password_file: Option<PathBuf>,
}

/// Returns the password for a database server whose connection string has none, or `None` if none
/// is found.
pub(crate) fn password(
    url: &ConnectionString,
    credentials: &PasswordSources,
) -> Result<Option<Password>, SharedCrawlError> {
    if let Some(password) = &credentials.password {
        return Ok(Some(password.clone()));
    }
    let Some(path) = &credentials.password_file else {
        return Ok(None);
    };
    let failed = |what: String| SharedCrawlError::PasswordFile {
        path: path.clone(),
        what,
    };
    let text = match read(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|why| failed(why.to_string()))?,
    };
    let config = url.config();
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    let mut passwords: Vec<Option<Password>> = url
        .hosts_and_ports()
        .map(|(host, port)| find(&text, [&*host, &*port.to_string(), database, user]))
        .collect();
    passwords.dedup();
    match passwords.len() {
        0 => Ok(None),
        1 => Ok(passwords.pop().flatten()),
        _ => Err(failed(
            "no single password fits all hosts of the connection string".to_owned(),
        )),
    }
}

/// Reads a password file, which only its owner may access.
fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let invalid = |what: String| io::Error::new(ErrorKind::InvalidData, what);
    if !metadata.is_file() {
        return Err(invalid("it isn't a regular file".to_owned()));
    }
    if metadata.mode() & OTHERS != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(invalid(format!(
            "other users may read it (mode {mode:04o})"
        )));
    }
    let mut text = String::new();
    let mut file = file.take(MAX_PASSWORD_FILE_BYTES + 1);
    if file.read_to_string(&mut text)? as u64 > MAX_PASSWORD_FILE_BYTES {
        return Err(invalid(format!(
            "it is larger than {MAX_PASSWORD_FILE_BYTES} bytes"
        )));
    }
    Ok(text)
}

/// Returns the password of the first line that matches host, port, database and user. The rules are
/// those of libpq: lines are `host:port:database:user:password`, `*` matches anything, and a
/// backslash escapes the next character.
fn find(text: &str, target: [&str; 4]) -> Option<Password> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(fields).find_map(|(pattern, password)| {
        let fits = |(pattern, target): (&PasswordFileField, &&str)| {
            pattern.is_any || pattern.text == **target
        };
        // For a socket in the default folder, libpq searches the password file for the host
        // `localhost`.
        let is_socket = target[0].starts_with('/') && pattern[0].text == "localhost";
        let is_match = pattern
            .iter()
            .zip(&target)
            .enumerate()
            .all(|(at, pair)| fits(pair) || at == 0 && is_socket);
        is_match.then_some(password)
    })
}

/// A field of a line of the password file.
struct PasswordFileField {
    text: String,
    is_any: bool,
}

fn fields(line: &str) -> Option<([PasswordFileField; 4], Password)> {
    let mut fields = Vec::with_capacity(4);
    let mut field = String::new();
    let mut is_plain = true;
    let mut chars = line.chars();
    while fields.len() < 4 {
        match chars.next()? {
            '\\' => {
                is_plain = false;
                field.extend(chars.next());
            }
            ':' => {
                fields.push(PasswordFileField {
                    is_any: is_plain && field == "*",
                    text: std::mem::take(&mut field),
                });
                is_plain = true;
            }
            other => field.push(other),
        }
    }
    let mut password = String::new();
    while let Some(next) = chars.next() {
        match next {
            '\\' => password.extend(chars.next()),
            other => password.push(other),
        }
    }
    Some((fields.try_into().ok()?, Password::new(password)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::{Password, PasswordSources, find, password};
    use crate::connection_string::ConnectionString;

    #[test]
    fn libpq_the_first_line_that_fits_gives_the_password() {
        let text = "# of the study\n\
                    db.example.org:5432:crawl:crawler:one:two\\:\\\\three\n\
                    db.example.org:*:*:crawler:four\n\
                    localhost:*:crawl:*:five\n\
                    \\*:*:*:*:six\n\
                    no line\n\
                    *:*:*:last:seven";
        let check = |asked: [&str; 4], expected: Option<&str>| {
            let expected = expected.map(Password::new);
            assert!(find(text, asked) == expected, "{asked:?}");
        };
        let at = |host, port| [host, port, "crawl", "crawler"];
        check(at("db.example.org", "5432"), Some("one:two:\\three"));
        check(at("db.example.org", "5433"), Some("four"));
        check(at("127.0.0.1", "5432"), None);
        check(at("/run/postgresql", "5432"), Some("five"));
        check(at("*", "5432"), Some("six"));
        check(["a.example", "1", "x", "last"], Some("seven"));
    }

    #[test]
    fn a_password_file_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pgpass");
        let url = ConnectionString::parse("postgres://me@a.example,b.example/crawl").unwrap();
        let mut credentials = PasswordSources {
            password: None,
            password_file: Some(path.clone()),
        };
        let of_file = || password(&url, &credentials);
        assert!(of_file().unwrap().is_none(), "there is no file");
        let written = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        };
        written("*:*:*:me:s3cret\n", 0o640);
        let refused = of_file().unwrap_err().to_string();
        assert!(
            refused.contains("mode 0640") && refused.contains("\nhint: "),
            "{refused}"
        );
        written("*:*:*:me:s3cret\n", 0o600);
        let found_password = of_file().unwrap();
        assert!(found_password == Some(Password::new("s3cret")));
        assert!(!format!("{found_password:?}").contains("s3cret"));
        written("a.example:*:*:me:s3cret\n", 0o600);
        let refused = of_file().unwrap_err().to_string();
        assert!(refused.contains("no single password"), "{refused}");
        let explicit = Password::new("other");
        credentials.password = Some(explicit.clone());
        let found_password = password(&url, &credentials).unwrap();
        assert!(found_password == Some(explicit));
    }
}
