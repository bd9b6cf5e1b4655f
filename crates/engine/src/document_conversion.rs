//! Converts documents other than HTML to HTML for the index. Text and short Markdown are read in
//! this process. PDF, DOCX and long Markdown are read in another process, with limits on time,
//! memory and output.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crawl_documents::{DocumentConversionError, DocumentKind, DocumentLimits};
use crawl_extractor::DecodedPage;

/// The exit code of a process for reading documents (see [`DocumentIndexingSettings::program`]) if
/// it can't read its document. The process writes the reason to stderr.
pub const UNREADABLE_EXIT_CODE: u8 = 65;

/// The `Content-Type` of the HTML that documents are converted to.
pub(crate) const HTML_IN_UTF8: &str = "text/html; charset=utf-8";

/// Maximum bytes of a reading process's stderr to keep.
const MAX_STDERR_BYTES: u64 = 4096;
/// Bytes to allow for the head of the HTML, because [`DocumentLimits`] limits only the main text.
const HEAD_BYTES: u64 = 64 * 1024;
/// How often to check whether to abort, while another process reads a document.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// `SIGXCPU`: the process exceeded its processor time.
const SIGXCPU: i32 = 24;

/// Which documents are indexed, and how documents other than HTML are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentIndexingSettings {
    /// Whether HTML pages are indexed.
    pub html: bool,
    /// The other kinds to index.
    pub kinds: BTreeSet<DocumentKind>,
    /// The program to run as another process for PDF, DOCX and long Markdown. The call is `PROGRAM
    /// read-document KIND --memory BYTES --timeout SECONDS --html-bytes BYTES [--last-modified
    /// DATE]`. The program reads the document from stdin and writes HTML to stdout. If `None`,
    /// these documents are not read.
    pub program: Option<PathBuf>,
    /// The maximum time for reading one document.
    pub timeout: Duration,
    /// The maximum address space of a reading process, in bytes.
    pub memory: u64,
    /// Limits on the text and other content to read from a document.
    pub limits: DocumentLimits,
}

impl Default for DocumentIndexingSettings {
    fn default() -> Self {
        DocumentIndexingSettings {
            html: true,
            kinds: BTreeSet::from([
                DocumentKind::Markdown,
                DocumentKind::Docx,
                DocumentKind::Pdf,
            ]),
            program: None,
            timeout: Duration::from_secs(10),
            memory: 512 << 20,
            limits: DocumentLimits::default(),
        }
    }
}

/// A document to convert to HTML: its kind, header values and body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentToConvert<'a> {
    pub(crate) kind: DocumentKind,
    /// The value of the response's `Content-Type` header.
    pub(crate) content_type: Option<&'a str>,
    /// The value of the response's `Last-Modified` header.
    pub(crate) last_modified: Option<&'a str>,
    /// The body with its content coding removed.
    pub(crate) bytes: &'a [u8],
}

/// Why a document could not be converted to HTML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConversionFailure {
    /// The document is broken or encrypted.
    Unreadable(String),
    /// Reading took too long.
    Timeout,
    /// Reading took too much memory.
    Memory,
    /// The HTML that the document was converted to is too long.
    Output,
    /// The reading process crashed.
    Crashed,
    /// No reading process could be started.
    NoReader,
    /// The document was not read, because the run ended.
    GivenUp,
}

impl ConversionFailure {
    /// Returns the failure's name as written in rows.
    pub(crate) fn name(&self) -> String {
        match self {
            ConversionFailure::Unreadable(why) => format!("document_unreadable: {why}"),
            ConversionFailure::Timeout => "document_timeout".to_owned(),
            ConversionFailure::Memory => "document_memory".to_owned(),
            ConversionFailure::Output => "document_output".to_owned(),
            ConversionFailure::Crashed => "document_crashed".to_owned(),
            ConversionFailure::NoReader => "document_reader_missing".to_owned(),
            ConversionFailure::GivenUp => "given_up".to_owned(),
        }
    }
}

impl DocumentIndexingSettings {
    /// Returns the kind of a document, judging by its `Content-Type`, the path of its URL and its
    /// bytes. `None` for HTML, and for kinds that are not indexed.
    pub(crate) fn kind(
        &self,
        content_type: Option<&str>,
        path: &str,
        bytes: &[u8],
    ) -> Option<DocumentKind> {
        let kind = DocumentKind::of(content_type, path, bytes)?;
        let has_reader = !kind.needs_process(bytes.len()) || self.program.is_some();
        (has_reader && self.kinds.contains(&kind)).then_some(kind)
    }

    /// Returns whether the `Content-Type` or the path suggests a document kind that is indexed.
    /// Usable before the body is decoded.
    pub(crate) fn may_be_read(&self, content_type: Option<&str>, path: &str) -> bool {
        let kind = DocumentKind::named(content_type, path);
        kind.is_some_and(|kind| self.kinds.contains(&kind))
    }

    /// Converts a document to HTML in UTF-8. If another process converts it, setting `gives_back`
    /// aborts the conversion.
    pub(crate) fn to_html(
        &self,
        document: DocumentToConvert<'_>,
        gives_back: &AtomicBool,
    ) -> Result<String, ConversionFailure> {
        if matches!(document.kind, DocumentKind::Docx | DocumentKind::Pdf) {
            return self.read_apart(document, gives_back);
        }
        let text = DecodedPage::decode(document.bytes, document.content_type);
        let bytes = text.as_str().as_bytes();
        if document.kind.needs_process(document.bytes.len()) {
            return self.read_apart(DocumentToConvert { bytes, ..document }, gives_back);
        }
        let html = document
            .kind
            .to_html(bytes, &self.limits, document.last_modified);
        html.map_err(|why: DocumentConversionError| ConversionFailure::Unreadable(why.to_string()))
    }

    /// Reads a document in a separate process.
    fn read_apart(
        &self,
        document: DocumentToConvert<'_>,
        gives_back: &AtomicBool,
    ) -> Result<String, ConversionFailure> {
        let program = self.program.as_ref().ok_or(ConversionFailure::NoReader)?;
        let mut child = Command::new(program)
            .arg("read-document")
            .arg(document.kind.to_string())
            .args(["--memory", &self.memory.to_string()])
            .args(["--timeout", &self.timeout.as_secs().max(1).to_string()])
            .args(["--html-bytes", &self.limits.html_bytes.to_string()])
            .args(document.last_modified.map(|date| format!("--last-modified={date}")))
            .env_clear()
            // Keep Ctrl-C at the terminal from reaching the child process, because the crawl ends
            // the child itself.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|_| ConversionFailure::NoReader)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stderr = child.stderr.take();
        let max = (self.limits.html_bytes as u64)
            .saturating_mul(2)
            .saturating_add(HEAD_BYTES);
        let (ended, end) = channel();
        let ended_early = ended.clone();
        thread::scope(|scope| {
            // Ignore write errors: they only mean that the process has exited.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(document.bytes)));
            scope.spawn(move || read_all(stdout, max, &OutputStream::Html, &ended));
            scope.spawn(move || {
                read_all(
                    stderr,
                    MAX_STDERR_BYTES,
                    &OutputStream::Errors,
                    &ended_early,
                );
            });
            let answer = self.answer(&end, gives_back);
            if answer.is_err() {
                // Ignore errors: they only mean that the process has already exited.
                let _ = child.kill();
            }
            let status = wait(&mut child);
            let ReadingProcessOutput { html, errors } = answer?;
            if html.len() as u64 > max {
                return Err(ConversionFailure::Output);
            }
            verdict(status, &errors)?;
            String::from_utf8(html).map_err(|_| ConversionFailure::Crashed)
        })
    }

    /// Waits until the process has closed stdout and stderr, and returns their contents. Returns an
    /// error if that takes too long or `gives_back` is set.
    fn answer(
        &self,
        end: &std::sync::mpsc::Receiver<(OutputStream, Vec<u8>)>,
        gives_back: &AtomicBool,
    ) -> Result<ReadingProcessOutput, ConversionFailure> {
        let began = Instant::now();
        let mut answer = ReadingProcessOutput::default();
        let mut open = 2;
        while open > 0 {
            match end.recv_timeout(POLL_INTERVAL) {
                Ok((OutputStream::Html, bytes)) => answer.html = bytes,
                Ok((OutputStream::Errors, bytes)) => answer.errors = bytes,
                Err(RecvTimeoutError::Timeout) if gives_back.load(Ordering::Relaxed) => {
                    return Err(ConversionFailure::GivenUp);
                }
                Err(RecvTimeoutError::Timeout) if began.elapsed() > self.timeout => {
                    return Err(ConversionFailure::Timeout);
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Err(ConversionFailure::Crashed),
            }
            open -= 1;
        }
        Ok(answer)
    }
}

/// The output of a reading process.
#[derive(Debug, Default)]
struct ReadingProcessOutput {
    html: Vec<u8>,
    errors: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum OutputStream {
    Html,
    Errors,
}

/// Reads a stream to its end, and sends its first `max + 1` bytes. The extra byte shows that the
/// stream is longer than `max` bytes.
fn read_all(
    stream: Option<impl std::io::Read>,
    max: u64,
    which: &OutputStream,
    ended: &Sender<(OutputStream, Vec<u8>)>,
) {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        let _ = stream
            .by_ref()
            .take(max.saturating_add(1))
            .read_to_end(&mut bytes);
        // Read the excess output too, so that the process does not block on writing.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    }
    let _ = ended.send((*which, bytes));
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    child.wait().ok()
}

/// Determines whether a reading process succeeded, from its exit status and error output.
fn verdict(status: Option<ExitStatus>, errors: &[u8]) -> Result<(), ConversionFailure> {
    let errors = String::from_utf8_lossy(errors);
    let code = status.and_then(|status| status.code());
    match (code, status.and_then(|status| status.signal())) {
        (Some(0), _) => Ok(()),
        (Some(code), _) if code == i32::from(UNREADABLE_EXIT_CODE) => {
            let reason = errors.lines().next().unwrap_or_default();
            Err(ConversionFailure::Unreadable(reason.to_owned()))
        }
        (_, Some(SIGXCPU)) => Err(ConversionFailure::Timeout),
        // Rust's runtime prints this text before it aborts for lack of memory.
        _ if errors.contains("memory allocation of") => Err(ConversionFailure::Memory),
        _ => Err(ConversionFailure::Crashed),
    }
}
