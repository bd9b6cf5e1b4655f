//! Converts documents other than HTML to HTML for the index: text and short Markdown in this process,
//! PDF, DOCX and long Markdown in a separate process with bounds on time, memory and output.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crawl_documents::{DocumentKind, DocumentLimits, Unreadable};
use crawl_extractor::PageText;

/// The exit code of a reading process whose document can't be read; why stands on stderr.
pub const UNREADABLE_EXIT_CODE: u8 = 65;

/// The `Content-Type` of what documents are turned into.
pub(crate) const HTML_IN_UTF8: &str = "text/html; charset=utf-8";

/// Bytes of what a reading process says on stderr that are kept.
const MAX_STDERR_BYTES: u64 = 4096;
/// Bytes that a page in HTML takes beside its main text, which [`DocumentLimits`] bound.
const HEAD_BYTES: u64 = 64 * 1024;
/// How often is looked whether the page is given back, while another process reads it.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// `SIGXCPU`: the process took more processor time than it may.
const SIGXCPU: i32 = 24;

/// Which documents go into the index, and how those that are not HTML are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentRules {
    /// True if pages in HTML go into the index.
    pub html: bool,
    /// The kinds beside HTML that go into it.
    pub kinds: BTreeSet<DocumentKind>,
    /// The program that reads PDF, DOCX and long Markdown: it is called as `PROGRAM read-document KIND
    /// --memory BYTES --timeout SECONDS --html-bytes BYTES [--last-modified DATE]`, takes the document on stdin and gives HTML on
    /// stdout. None: they are not read.
    pub program: Option<PathBuf>,
    /// The longest that the reading of one document may take.
    pub timeout: Duration,
    /// The most memory that a reading process may have, in bytes of its address space.
    pub memory: u64,
    /// The most that is read of one document.
    pub limits: DocumentLimits,
}

impl Default for DocumentRules {
    fn default() -> Self {
        DocumentRules {
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

/// A document that is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedDocument<'a> {
    pub(crate) kind: DocumentKind,
    /// The value of its `Content-Type` header.
    pub(crate) content_type: Option<&'a str>,
    /// The value of its `Last-Modified` header.
    pub(crate) last_modified: Option<&'a str>,
    /// Its bytes, without content coding.
    pub(crate) bytes: &'a [u8],
}

/// Why a document was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DocumentFault {
    /// It is broken or encrypted.
    Unreadable(String),
    /// Its reading took too long.
    Timeout,
    /// Its reading took too much memory.
    Memory,
    /// It came to more HTML than it may.
    Output,
    /// The process that read it died.
    Crashed,
    /// No process could be started to read it.
    NoReader,
    /// The page is given back: the run ends.
    GivenUp,
}

impl DocumentFault {
    /// As rows name it.
    pub(crate) fn name(&self) -> String {
        match self {
            DocumentFault::Unreadable(why) => format!("document_unreadable: {why}"),
            DocumentFault::Timeout => "document_timeout".to_owned(),
            DocumentFault::Memory => "document_memory".to_owned(),
            DocumentFault::Output => "document_output".to_owned(),
            DocumentFault::Crashed => "document_crashed".to_owned(),
            DocumentFault::NoReader => "document_reader_missing".to_owned(),
            DocumentFault::GivenUp => "given_up".to_owned(),
        }
    }
}

impl DocumentRules {
    /// The kind of a document by its header, the path of its URL and its first bytes, where that
    /// goes into the index and is not HTML.
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

    /// Returns whether a document may have such a kind, before its content coding is undone.
    pub(crate) fn may_be_read(&self, content_type: Option<&str>, path: &str) -> bool {
        let kind = DocumentKind::named(content_type, path);
        kind.is_some_and(|kind| self.kinds.contains(&kind))
    }

    /// A document as HTML in UTF-8. `gives_back` ends a reading that takes long.
    pub(crate) fn to_html(
        &self,
        document: IndexedDocument<'_>,
        gives_back: &AtomicBool,
    ) -> Result<String, DocumentFault> {
        if matches!(document.kind, DocumentKind::Docx | DocumentKind::Pdf) {
            return self.read_apart(document, gives_back);
        }
        let text = PageText::decode(document.bytes, document.content_type);
        let bytes = text.as_str().as_bytes();
        if document.kind.needs_process(document.bytes.len()) {
            return self.read_apart(IndexedDocument { bytes, ..document }, gives_back);
        }
        let html = document
            .kind
            .to_html(bytes, &self.limits, document.last_modified);
        html.map_err(|why: Unreadable| DocumentFault::Unreadable(why.to_string()))
    }

    /// Reads a document in a process of its own.
    fn read_apart(
        &self,
        document: IndexedDocument<'_>,
        gives_back: &AtomicBool,
    ) -> Result<String, DocumentFault> {
        let program = self.program.as_ref().ok_or(DocumentFault::NoReader)?;
        let mut child = Command::new(program)
            .arg("read-document")
            .arg(document.kind.to_string())
            .args(["--memory", &self.memory.to_string()])
            .args(["--timeout", &self.timeout.as_secs().max(1).to_string()])
            .args(["--html-bytes", &self.limits.html_bytes.to_string()])
            .args(document.last_modified.map(|date| format!("--last-modified={date}")))
            .env_clear()
            // A Ctrl-C at the terminal is for the crawl, which ends its own processes.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|_| DocumentFault::NoReader)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stderr = child.stderr.take();
        let most = (self.limits.html_bytes as u64)
            .saturating_mul(2)
            .saturating_add(HEAD_BYTES);
        let (ended, end) = channel();
        let ended_early = ended.clone();
        thread::scope(|scope| {
            // A process that died reads no more: then there is nobody to write to.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(document.bytes)));
            scope.spawn(move || read_all(stdout, most, &Stream::Html, &ended));
            scope.spawn(move || read_all(stderr, MAX_STDERR_BYTES, &Stream::Errors, &ended_early));
            let answer = self.answer(&end, gives_back);
            if answer.is_err() {
                // It may have ended by itself meanwhile.
                let _ = child.kill();
            }
            let status = wait(&mut child);
            let Answer { html, errors } = answer?;
            if html.len() as u64 > most {
                return Err(DocumentFault::Output);
            }
            verdict(status, &errors)?;
            String::from_utf8(html).map_err(|_| DocumentFault::Crashed)
        })
    }

    /// Waits until both streams have ended, or there is no more time.
    fn answer(
        &self,
        end: &std::sync::mpsc::Receiver<(Stream, Vec<u8>)>,
        gives_back: &AtomicBool,
    ) -> Result<Answer, DocumentFault> {
        let began = Instant::now();
        let mut answer = Answer::default();
        let mut open = 2;
        while open > 0 {
            match end.recv_timeout(POLL_INTERVAL) {
                Ok((Stream::Html, bytes)) => answer.html = bytes,
                Ok((Stream::Errors, bytes)) => answer.errors = bytes,
                Err(RecvTimeoutError::Timeout) if gives_back.load(Ordering::Relaxed) => {
                    return Err(DocumentFault::GivenUp);
                }
                Err(RecvTimeoutError::Timeout) if began.elapsed() > self.timeout => {
                    return Err(DocumentFault::Timeout);
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Err(DocumentFault::Crashed),
            }
            open -= 1;
        }
        Ok(answer)
    }
}

/// What a reading process wrote.
#[derive(Debug, Default)]
struct Answer {
    html: Vec<u8>,
    errors: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Stream {
    Html,
    Errors,
}

/// Reads a stream to its end, keeps a byte more than `most` of it, and tells.
fn read_all(
    stream: Option<impl std::io::Read>,
    most: u64,
    which: &Stream,
    ended: &Sender<(Stream, Vec<u8>)>,
) {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        let _ = stream
            .by_ref()
            .take(most.saturating_add(1))
            .read_to_end(&mut bytes);
        // What is too long is passed by, so that the process comes to its end.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    }
    let _ = ended.send((*which, bytes));
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    child.wait().ok()
}

/// What the end of a reading process says of its document.
fn verdict(status: Option<ExitStatus>, errors: &[u8]) -> Result<(), DocumentFault> {
    let errors = String::from_utf8_lossy(errors);
    let code = status.and_then(|status| status.code());
    match (code, status.and_then(|status| status.signal())) {
        (Some(0), _) => Ok(()),
        (Some(code), _) if code == i32::from(UNREADABLE_EXIT_CODE) => {
            let why = errors.lines().next().unwrap_or_default();
            Err(DocumentFault::Unreadable(why.to_owned()))
        }
        (_, Some(SIGXCPU)) => Err(DocumentFault::Timeout),
        // So Rust's runtime says it before it gives up.
        _ if errors.contains("memory allocation of") => Err(DocumentFault::Memory),
        _ => Err(DocumentFault::Crashed),
    }
}
