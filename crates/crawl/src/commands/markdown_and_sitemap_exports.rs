//! `crawl export --to markdown`, `llms-txt` and `sitemap`: exports a crawl's pages as files for a
//! site to publish.

use std::io;
use std::path::Path;

use crawl_archive::AtomicFile;
use crawl_index::export::{
    ExportError, FetchedBody, LlmsTxtWriter, MarkdownFolderWriter, SitemapFolderWriter,
};
use crawl_index::{IndexSearcher, IndexedPage};
use crawl_records::{ArchivedPageLocator, CurrentRow, CurrentRowSelector, RecordsError, counted};

use crate::cli::args::{ExportArgs, ExportFormat};

/// The records of a crawl that these exports need in addition to its index.
pub(crate) struct ArchivedPagesAndRedirects {
    archived: ArchivedPageLocator,
    /// The URL of each redirect, and its target. Only for a Markdown export.
    redirects: Vec<(String, String)>,
}

impl ArchivedPagesAndRedirects {
    pub(crate) fn open(
        dir: &Path,
        format: ExportFormat,
    ) -> Result<ArchivedPagesAndRedirects, RecordsError> {
        let mut redirects = Vec::new();
        if format == ExportFormat::Markdown {
            CurrentRowSelector::open(dir)?.each(|row| {
                if let CurrentRow::Redirect(row) = row
                    && let Some(target) = row.redirect
                {
                    redirects.push((row.url, target));
                }
                Ok::<_, RecordsError>(())
            })?;
        }
        let archived = ArchivedPageLocator::open(dir)?;
        Ok(ArchivedPagesAndRedirects {
            archived,
            redirects,
        })
    }
}

/// Writes the files and returns a message about them. `now` is in seconds since 1970 UTC.
pub(crate) fn export(
    args: &ExportArgs,
    index: &IndexSearcher,
    fetched: ArchivedPagesAndRedirects,
    now: i64,
) -> Result<String, ExportError> {
    match args.to {
        ExportFormat::Sitemap => sitemap(args, index, &fetched.archived, now),
        ExportFormat::LlmsTxt => llms_txt(args, index, &fetched.archived, now),
        _ => markdown(args, index, fetched, now),
    }
}

fn markdown(
    args: &ExportArgs,
    index: &IndexSearcher,
    ArchivedPagesAndRedirects {
        archived,
        redirects,
    }: ArchivedPagesAndRedirects,
    now: i64,
) -> Result<String, ExportError> {
    let mut folder = MarkdownFolderWriter::create(&args.out, now)?;
    for (url, target) in redirects {
        folder.redirect(url, target);
    }
    index.each_page_and_duplicate(|page| {
        let seen = archived.seen(&page.url);
        folder.name(&page, seen.is_some_and(|seen| seen.is_withheld));
        Ok::<_, ExportError>(())
    })?;
    index.each_page(|page| {
        let stored = archived.read(&page.url);
        let source = stored.as_ref().map(|stored| FetchedBody {
            content_type: stored.content_type.as_deref(),
            body: &stored.body,
        });
        folder.page(&page, source)
    })?;
    let done = folder.finish()?;
    let mut message = format!(
        "{} written: {}",
        args.out.display(),
        counted(done.pages, "page", "pages")
    );
    if done.documents > 0 {
        let pages = counted(done.documents, "page", "pages");
        message.push_str(&format!(
            "; {pages} from the text in the index, since the body is not HTML"
        ));
    }
    if done.without_body > 0 {
        let pages = counted(done.without_body, "page", "pages");
        message.push_str(&format!(
            "; {pages} from the text in the index, since the archive has no body"
        ));
    }
    if done.without_text > 0 {
        let pages = counted(done.without_text, "page", "pages");
        message.push_str(&format!(
            "; {pages} without text, since the page forbids excerpts (nosnippet, max-snippet)"
        ));
    }
    if done.withheld > 0 {
        message.push_str(&format!(
            "; {} left out, since the site forbids copies (noarchive, Content-Usage and the like)",
            counted(done.withheld, "page", "pages")
        ));
    }
    Ok(message)
}

fn llms_txt(
    args: &ExportArgs,
    index: &IndexSearcher,
    archived: &ArchivedPageLocator,
    now: i64,
) -> Result<String, ExportError> {
    let mut list = LlmsTxtWriter::new(now);
    index.each_page(|page| {
        let seen = archived.seen(&page.url);
        list.page(&page, seen.is_some_and(|seen| seen.refuses_ai_input));
        Ok::<_, ExportError>(())
    })?;
    let done = if args.out.as_os_str() == "-" {
        list.finish(&mut io::stdout().lock())?
    } else {
        let mut file = AtomicFile::create(&args.out)?;
        let done = list.finish(&mut file)?;
        file.finish()?;
        done
    };
    let mut message = format!(
        "{} written: {}",
        args.out.display(),
        counted(done.pages, "page", "pages")
    );
    if done.left_out > 0 {
        message.push_str(&format!(
            "; {} left out (expired, or the site refuses ai-input)",
            counted(done.left_out, "page", "pages")
        ));
    }
    Ok(message)
}

fn sitemap(
    args: &ExportArgs,
    index: &IndexSearcher,
    archived: &ArchivedPageLocator,
    now: i64,
) -> Result<String, ExportError> {
    let mut folder = SitemapFolderWriter::create(&args.out, now)?;
    index.each_page(|page| {
        folder.page(&page, last_change(&page, archived));
        Ok::<_, ExportError>(())
    })?;
    let done = folder.finish()?;
    Ok(format!(
        "{} written: {} in {}, {} with a date of change",
        args.out.display(),
        counted(done.pages, "page", "pages"),
        counted(done.files, "file", "files"),
        done.dated
    ))
}

/// Returns when a page last changed, in seconds since 1970 UTC: the time of the fetch that detected
/// the change, else the date stated in the page, else `Last-Modified`. A `Last-Modified` close to
/// the time of the request is ignored: servers that generate pages on request send the current
/// time.
fn last_change(page: &IndexedPage, archived: &ArchivedPageLocator) -> Option<i64> {
    let seen = archived.seen(&page.url);
    let changed = seen.and_then(|seen| seen.changed_at);
    let changed = changed.and_then(|at| i64::try_from(at.as_millis() / 1_000).ok());
    changed.or(page.modified).or_else(|| {
        let fetched = i64::try_from(seen?.fetched_at.as_millis() / 1_000).ok()?;
        let stated = archived.read(&page.url)?.last_modified?;
        (stated + MIN_AGE_SECONDS < fetched).then_some(stated)
    })
}

/// Minimum seconds from `Last-Modified` to the fetch for `Last-Modified` to be trusted. Allows for
/// a difference between the server's clock and ours.
const MIN_AGE_SECONDS: i64 = 60;
