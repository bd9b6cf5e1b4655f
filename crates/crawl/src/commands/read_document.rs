//! `crawl read-document`: converts one PDF, DOCX or long Markdown from stdin to HTML on stdout. A
//! crawl starts this process for each such document, so that a hostile document can harm only this
//! process.

use std::io::{Read as _, Write as _};

use crawl_documents::DocumentLimits;
use crawl_engine::UNREADABLE_EXIT_CODE;
use nix::sys::resource::{Resource, setrlimit};

use crate::cli::args::ReadDocumentArgs;
use crate::error::{CommandError, FINISHED};

/// Maximum open descriptors: stdin, stdout and stderr, which are open from the start.
const MAX_DESCRIPTORS: u64 = 3;

pub(crate) fn run(args: &ReadDocumentArgs) -> Result<u8, CommandError> {
    let bounds = [
        (Resource::RLIMIT_AS, args.memory, args.memory),
        // At the soft limit of processor time, the system sends the process a signal that ends it.
        // At the hard limit, the system kills the process.
        (
            Resource::RLIMIT_CPU,
            args.timeout,
            args.timeout.saturating_add(1),
        ),
        (Resource::RLIMIT_NOFILE, MAX_DESCRIPTORS, MAX_DESCRIPTORS),
        // Prevent the process from writing files or a core dump.
        (Resource::RLIMIT_FSIZE, 0, 0),
        (Resource::RLIMIT_CORE, 0, 0),
    ];
    for (resource, soft, hard) in bounds {
        setrlimit(resource, soft, hard).map_err(|why| {
            CommandError::disk(format!("cannot set {resource:?} to {soft}: {why}"))
        })?;
    }
    let failed = |why: std::io::Error| CommandError::disk(why.to_string());
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let limits = DocumentLimits {
        html_bytes: args.html_bytes,
        ..DocumentLimits::default()
    };
    match args
        .kind
        .to_html(&bytes, &limits, args.last_modified.as_deref())
    {
        Ok(html) => {
            std::io::stdout()
                .lock()
                .write_all(html.as_bytes())
                .map_err(failed)?;
            Ok(FINISHED)
        }
        Err(why) => {
            // The crawl that started this process reads the reason from stderr.
            let _ = writeln!(std::io::stderr(), "{why}");
            Ok(UNREADABLE_EXIT_CODE)
        }
    }
}
