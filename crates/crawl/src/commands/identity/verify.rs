//! `crawl identity verify`: verifies the signatures of requests in logs and WARC files, and of HTML
//! pages.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crawl_archive::{ReadError, WarcReader, ZSTD_MAGIC};
use crawl_identity::{
    KeyDirectory, PublicKey, SeenNonces, SignatureConditions, verify, verify_document,
};
use crawl_records::signed_message;
use crawl_weburl::{HostKey, canonicalize};
use flate2::bufread::MultiGzDecoder;

use super::log_line;
use super::logged_request::LoggedRequest;
use super::logged_signature_counts::LoggedSignatureCounts;
use crate::error::{CHECK_FAILED, CommandError, FINISHED, NEGATIVE_RESULT};
use crate::identity::{PublishedKeysArgument, published_keys};
use crate::input_file_reader::unreadable;
use crate::terminal::print;
use crate::values::DurationSetting;

/// Maximum seconds from the date of a request in a WARC file to its signature. The crawler takes
/// the date before it looks up the host's address, and signs the request after the look-up.
const WARC_DELAY: u64 = 60;
/// Number of bytes at the start of a file in which to look for `<`, which marks an HTML page.
const MAGIC_BYTES: usize = 16;
/// Maximum bytes of a line of a log that `crawl identity verify` reads.
/// Beyond the limit: the line is skipped.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// The arguments of `crawl identity verify`.
pub(super) struct IdentityVerifyOptions<'a> {
    pub(super) logs: &'a [PathBuf],
    pub(super) keys: &'a [PublishedKeysArgument],
    /// The hosts for which signatures may be valid. If empty, signatures for any host may be valid.
    pub(super) hosts: &'a [String],
    pub(super) max_lifetime: DurationSetting,
    pub(super) clock_tolerance: DurationSetting,
    pub(super) as_json: bool,
}

/// Verifies the signatures of all requests in the given files, and counts the verdicts.
struct Verifier {
    keys: Vec<KeyDirectory>,
    /// The hosts for which signatures may be valid. If empty, signatures for any host may be valid.
    hosts: Vec<HostKey>,
    max_lifetime: u64,
    clock_tolerance: u64,
    seen: SeenNonces,
    found: LoggedSignatureCounts,
}

pub(super) fn run(request: &IdentityVerifyOptions<'_>) -> Result<u8, CommandError> {
    let hosts = request.hosts.iter().map(|host| {
        HostKey::parse(host)
            .map_err(|why| CommandError::usage(format!("unusable --host `{host}`: {why}")))
    });
    let mut verifier = Verifier {
        keys: published_keys(request.keys)?,
        hosts: hosts.collect::<Result<_, _>>()?,
        max_lifetime: request.max_lifetime.get().as_secs(),
        clock_tolerance: request.clock_tolerance.get().as_secs(),
        seen: SeenNonces::default(),
        found: LoggedSignatureCounts::new(request.as_json, !request.hosts.is_empty()),
    };
    let keys = verifier.keys.iter().flat_map(KeyDirectory::keys);
    let keys: Vec<PublicKey> = keys.cloned().collect();
    let mut documents = Vec::new();
    for log in request.logs {
        documents.extend(verifier.read(log, &keys)?);
    }
    let is_broken = documents.iter().any(|document| !document.holds);
    let words = documents.into_iter().map(|document| document.words);
    let findings = verifier.found;
    print((words.collect::<String>() + &findings.text()).as_bytes())?;
    Ok(match findings.invalid > 0 || is_broken {
        true => CHECK_FAILED,
        false if findings.requests > 0 && findings.valid() == 0 => NEGATIVE_RESULT,
        false => FINISHED,
    })
}

/// The result of verifying the signature of an HTML page: whether it holds, and a description for
/// the user.
struct PageSignatureResult {
    holds: bool,
    words: String,
}

impl Verifier {
    /// Judges the requests in a log or a WARC file, and returns `None`. If the file is an HTML
    /// page, verifies its signature instead, and returns the result.
    fn read(
        &mut self,
        path: &Path,
        keys: &[PublicKey],
    ) -> Result<Option<PageSignatureResult>, CommandError> {
        let failed = |why: std::io::Error| unreadable(path, &why);
        let input: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(std::io::stdin()),
            false => Box::new(File::open(path).map_err(failed)?),
        };
        let mut input = BufReader::new(input);
        let start = input.fill_buf().map_err(failed)?;
        if start.starts_with(&[0x1f, 0x8b]) {
            let mut log = BufReader::new(MultiGzDecoder::new(input));
            if log.fill_buf().map_err(failed)?.starts_with(b"WARC/") {
                self.read_warc(path)?;
            } else {
                self.read_lines(log, path)?;
            }
            return Ok(None);
        }
        if start.starts_with(b"WARC/") || start.starts_with(&ZSTD_MAGIC) {
            self.read_warc(path)?;
            return Ok(None);
        }
        let start = start[..start.len().min(MAGIC_BYTES)].trim_ascii_start();
        if start.starts_with(b"<") {
            let mut text = String::new();
            input.read_to_string(&mut text).map_err(failed)?;
            return Ok(Some(document(path, &text, keys)));
        }
        self.read_lines(input, path)?;
        Ok(None)
    }

    fn read_lines(&mut self, mut input: impl BufRead, path: &Path) -> Result<(), CommandError> {
        let failed = |why: std::io::Error| unreadable(path, &why);
        let (mut line, mut requests, mut others) = (Vec::new(), 0_u64, 0_u64);
        while (&mut input)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(failed)?
            > 0
        {
            let is_cut = line.len() as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n");
            if is_cut {
                input.skip_until(b'\n').map_err(failed)?;
            }
            let request = match is_cut {
                true => None,
                false => log_line::read(&String::from_utf8_lossy(&line)),
            };
            match request {
                Some(request) => {
                    requests += 1;
                    self.judge(&request, None)?;
                }
                None => others += 1,
            }
            line.clear();
        }
        self.found.skipped += others;
        match requests == 0 && others > 0 {
            false => Ok(()),
            true => Err(CommandError::usage(format!(
                "`{}` has no line that is a request with its header fields",
                path.display()
            ))
            .hint("log the header fields of requests: see docs/identity.md")),
        }
    }

    fn read_warc(&mut self, path: &Path) -> Result<(), CommandError> {
        let failed =
            |why: ReadError| CommandError::disk(format!("can't read `{}`: {why}", path.display()));
        for record in WarcReader::open(path).map_err(failed)? {
            let record = match record {
                Err(ReadError::TooLong { .. }) => continue,
                record => record.map_err(failed)?,
            };
            if let Some(message) = signed_message(&record) {
                let at = record.date().map(|date| date.as_millis() / 1000);
                let request = LoggedRequest {
                    message,
                    at,
                    is_whole: true,
                };
                let target = record.url().and_then(|url| canonicalize(None, url).ok());
                self.judge(
                    &request,
                    target.as_ref().map(|url| url.as_url().authority()),
                )?;
            }
        }
        Ok(())
    }

    /// Judges the signatures of a request. `target` is the authority of the URL in a WARC record,
    /// or `None` for a log, which records only the request's own fields.
    fn judge(&mut self, request: &LoggedRequest, target: Option<&str>) -> Result<(), CommandError> {
        let message = &request.message;
        let mut terms = SignatureConditions {
            at: request.at.unwrap_or(0),
            before: self.clock_tolerance,
            after: self.clock_tolerance.max(target.map_or(0, |_| WARC_DELAY)),
            max_lifetime: self.max_lifetime,
        };
        let mut verdicts = verify(message, &self.keys, &terms);
        if request.at.is_none() {
            // The log has no time for this request, so judge the signatures at the time when the
            // latest signature was created.
            let created = verdicts.iter().filter_map(|verdict| verdict.created).max();
            terms.at = created.unwrap_or(0);
            verdicts = verify(message, &self.keys, &terms);
        }
        let authority = message.authority();
        let is_own = self.is_own(&authority) && target.is_none_or(|target| target == authority);
        for verdict in &mut verdicts {
            if !is_own {
                verdict.reject_host(&authority);
            }
            self.seen.judge(verdict);
        }
        self.found.note(request, &verdicts)
    }

    fn is_own(&self, authority: &str) -> bool {
        let key = HostKey::parse(authority);
        self.hosts.is_empty() || key.is_ok_and(|key| self.hosts.contains(&key))
    }
}

fn document(path: &Path, text: &str, keys: &[PublicKey]) -> PageSignatureResult {
    let verdict = verify_document(text, keys);
    let words = match &verdict {
        Ok((keyid, created)) => {
            let at = i64::try_from(*created).ok();
            let at = at.and_then(|at| jiff::Timestamp::from_second(at).ok());
            let at = at.map(|at| at.to_string()).unwrap_or_default();
            format!("signed on {at} with the key {keyid}, and unchanged")
        }
        Err(fault) => fault.to_string(),
    };
    PageSignatureResult {
        holds: verdict.is_ok(),
        words: format!("{}: {words}\n", path.display()),
    }
}
