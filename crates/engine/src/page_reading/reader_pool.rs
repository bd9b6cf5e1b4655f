//! The threads that read pages and encode records, one per processor.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crawl_index_entry::BytesInTransitLimit;
use crossbeam_channel::{self as channel, Receiver};
use tokio::sync::mpsc::WeakUnboundedSender;
use tracing::Span;

use super::document_queue::DocumentQueue;
use super::page_encoder::PageEncoder;
use super::{PageReader, UnreadPage};
use crate::config::Config;
use crate::field_extraction::extract_bytes;
use crate::messages::page_pipeline_stages::{FetchedPage, PageMemoryToFree, SitemapLinkBatch};
use crate::messages::replay_message_key::{KeyedMessage, ReplayMessageKey};
use crate::messages::{Event, WriterMessage};
use crate::state::crash_suspect_journal::{CrashSuspectJournalLine, ReadingJournal};

/// A task for a reader thread. Most tasks result in a message to the writer.
#[derive(Debug)]
pub(crate) enum ReaderTask {
    /// Read a fetched page. The key is for the resulting message.
    Read(Box<FetchedPage>, Option<ReplayMessageKey>),
    /// Free the memory of committed pages.
    Drop(Vec<PageMemoryToFree>),
    /// Pass a message on to the writer. Encode its exchange, if it has one, for the archive first.
    Pass(Box<KeyedMessage>),
}

/// A reader thread reports the pages that it started once they have this many bytes in total. Until
/// then, their bytes count as unread. The crawl loop sends no requests while too many bytes count
/// as unread (`MAX_UNREAD_BYTES` per reader thread). What all threads leave unreported must stay
/// below that limit. Otherwise the loop would wait for a report that never comes.
const MAX_UNREPORTED_BYTES: u64 = 1 << 20;

/// Maximum bytes of index entries on the way from the readers to the writer. A reader waits before
/// it exceeds this limit.
const MAX_ENTRY_BYTES: usize = 32 << 20;

/// Approximate memory for a link in bytes, including the URL of its page.
const LINK_BYTES: usize = 500;
/// Maximum memory for the links of documents that are read but not committed. A single document may
/// exceed it.
const MAX_LINK_BYTES: usize = 20_000 * LINK_BYTES;

/// The minimum interval between two measurements of the readers' load.
const LOAD_INTERVAL: Duration = Duration::from_millis(200);
/// The readers count as busy if they spend at least this percentage of their time on pages.
const BUSY_PERCENT: u64 = 40;

/// Returns the number of reader threads: one per processor.
pub(crate) fn count() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of threads for documents that are read in other processes. The documents of a
/// single host always leave at least one thread free.
fn document_count() -> usize {
    count() + 1
}

/// Returns the number of threads that read pages or documents.
pub(crate) fn all_threads() -> usize {
    count() + document_count()
}

/// The reader threads.
#[derive(Debug)]
pub(crate) struct ReaderPool {
    /// The channel has no limit, since the coordinator limits how much work it hands out.
    work: channel::Sender<ReaderTask>,
    /// If set, readers stop reading: they return waiting pages, and the pages that they are in the
    /// middle of, without a result.
    gives_back: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    documents: DocumentQueue<WaitingDocument>,
    /// The same as `gives_back`, for documents that are read in other processes.
    gives_documents_back: Arc<AtomicBool>,
    document_threads: Vec<JoinHandle<()>>,
    abandon: Arc<AtomicBool>,
}

/// A document, and the key for the resulting message.
type WaitingDocument = (Box<FetchedPage>, Option<ReplayMessageKey>);

/// Measures what share of the readers' time is spent reading pages. All clones share one
/// measurement.
#[derive(Clone, Debug)]
pub(crate) struct ReaderLoad {
    /// The total time that all readers have spent on pages, in nanoseconds.
    spent: Arc<AtomicU64>,
    readers: u32,
    window: Arc<Mutex<ReaderLoadMeasurement>>,
}

/// The last measurement of [`ReaderLoad`].
#[derive(Debug)]
struct ReaderLoadMeasurement {
    ended: Instant,
    /// The value of [`ReaderLoad::spent`] at the last measurement.
    spent: u64,
    is_busy: bool,
}

impl ReaderLoad {
    pub(crate) fn new() -> ReaderLoad {
        ReaderLoad {
            spent: Arc::default(),
            readers: u32::try_from(count()).unwrap_or(u32::MAX),
            window: Arc::new(Mutex::new(ReaderLoadMeasurement {
                ended: Instant::now(),
                spent: 0,
                is_busy: false,
            })),
        }
    }

    /// Returns whether readers spend much of their time reading pages. If so, the crawl is limited
    /// by the processors, since readers share them with all other threads.
    pub(crate) fn is_busy(&self) -> bool {
        let window = self.window.lock();
        let mut window = window.unwrap_or_else(PoisonError::into_inner);
        let took = window.ended.elapsed();
        if took >= LOAD_INTERVAL {
            let spent = self.spent.load(Ordering::Relaxed);
            let all = nanos(took.saturating_mul(self.readers));
            let busy = spent.saturating_sub(window.spent);
            *window = ReaderLoadMeasurement {
                ended: Instant::now(),
                spent,
                is_busy: busy.saturating_mul(100) >= all.saturating_mul(BUSY_PERCENT),
            };
        }
        window.is_busy
    }

    /// Adds the time that a reader spent on a page.
    fn add(&self, spent: Duration) {
        self.spent.fetch_add(nanos(spent), Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl ReaderPool {
    pub(crate) fn start(
        config: &Config,
        reader: PageReader,
        (items, events): (Sender<KeyedMessage>, WeakUnboundedSender<Event>),
        abandon: &Arc<AtomicBool>,
        journal: &ReadingJournal,
        load: &ReaderLoad,
    ) -> io::Result<ReaderPool> {
        // All readers take tasks from one queue, so that a slow page does not delay the pages
        // behind it.
        let (work, receiver) = channel::unbounded();
        let entries = BytesInTransitLimit::new(MAX_ENTRY_BYTES);
        let slots = journal.slots()?.into_iter().enumerate();
        // All clones of a `BytesInTransitLimit` share one count of bytes.
        let links = BytesInTransitLimit::new(MAX_LINK_BYTES);
        let gives_back = Arc::clone(&reader.gives_back);
        let gives_documents_back = Arc::default();
        let document_reader = PageReader {
            gives_back: Arc::clone(&gives_documents_back),
            ..reader.clone()
        };
        let reader = reader.handing_off_documents();
        let has_documents = reader.index && reader.documents.program.is_some();
        let documents = DocumentQueue::new(document_count() - 1);
        let (mut threads, mut document_threads) = (Vec::new(), Vec::new());
        let wanted = if has_documents {
            all_threads()
        } else {
            count()
        };
        for (n, slot) in slots.take(wanted) {
            let reads_pages = n < count();
            let reader = if reads_pages {
                &reader
            } else {
                &document_reader
            };
            let tools = ReaderWorker {
                reader: reader.clone(),
                encoder: PageEncoder::new(config, &reader.visits),
                slot,
                entries: entries.clone(),
                links: links.clone(),
                events: events.clone(),
                load: load.clone(),
                documents: documents.clone(),
                begun_bytes: 0,
            };
            let (receiver, items, abandon) = (receiver.clone(), items.clone(), Arc::clone(abandon));
            let span = Span::current();
            let (name, to) = match reads_pages {
                true => (format!("crawl-reader-{n}"), &mut threads),
                false => (format!("crawl-doc-{}", n - count()), &mut document_threads),
            };
            let thread = thread::Builder::new().name(name).spawn(move || {
                span.in_scope(|| match reads_pages {
                    true => serve(&receiver, &items, &abandon, tools),
                    false => serve_documents(&items, &abandon, tools),
                });
            })?;
            to.push(thread);
        }
        Ok(ReaderPool {
            threads,
            work,
            gives_back,
            documents,
            gives_documents_back,
            document_threads,
            abandon: Arc::clone(abandon),
        })
    }

    pub(crate) fn take(&self, work: ReaderTask) {
        // Sending fails only if all readers have ended. Ignore that here: the writer has then
        // ended too, and the driver detects it.
        let _ = self.work.send(work);
    }

    /// Makes readers return all pages and documents without a result from now on, even those that
    /// they are in the middle of.
    pub(crate) fn give_up_unread(&self) {
        self.gives_back.store(true, Ordering::Relaxed);
        self.give_up_documents();
    }

    /// Makes readers return documents without a result from now on, even those that they are in the
    /// middle of.
    pub(crate) fn give_up_documents(&self) {
        self.gives_documents_back.store(true, Ordering::Relaxed);
    }

    /// Ends all reader threads, after they have sent their last messages to the writer.
    pub(crate) fn end(self) {
        if self.abandon.load(Ordering::Relaxed) {
            self.give_up_documents();
        }
        drop(self.work);
        for thread in self.threads {
            let _ = thread.join();
        }
        // Close this queue only now, since the threads just joined could still add documents to it.
        self.documents.close();
        for thread in self.document_threads {
            let _ = thread.join();
        }
    }
}

/// The state of one reader thread.
struct ReaderWorker {
    reader: PageReader,
    encoder: PageEncoder,
    slot: CrashSuspectJournalLine,
    /// Limits the memory for index entries of all reader threads.
    entries: BytesInTransitLimit,
    /// Limits the memory that the links from all reader threads take until they are committed.
    links: BytesInTransitLimit,
    /// Sends events to the crawl loop. The sender is weak, so that the loop can detect the end of
    /// the writer's thread: the last strong sender is dropped then.
    events: WeakUnboundedSender<Event>,
    load: ReaderLoad,
    documents: DocumentQueue<WaitingDocument>,
    /// Bytes of the pages that this thread started and has not reported yet.
    begun_bytes: u64,
}

impl ReaderWorker {
    /// Reports the pages that this thread started. Combines several pages in a report, since each
    /// report wakes the loop.
    fn report_begun(&mut self, bytes: u64) {
        self.begun_bytes += bytes;
        if self.begun_bytes >= MAX_UNREPORTED_BYTES {
            let bytes = std::mem::take(&mut self.begun_bytes);
            self.send_event(Event::ReadingBegan { bytes });
        }
    }

    /// Reads a page and encodes its records. Returns the unchanged page as the error if it was not
    /// read.
    fn read(
        &mut self,
        page: Box<FetchedPage>,
        key: Option<ReplayMessageKey>,
        items: &Sender<KeyedMessage>,
    ) -> Result<KeyedMessage, UnreadPage> {
        let url = page.lease.url.clone();
        self.slot.begin(&url);
        // Sending fails only if the writer has ended. Ignore that here: this thread ends when it
        // then fails to send the page itself.
        let mut early = |mut batch: SitemapLinkBatch| {
            batch.held = Some(self.links.enter(batch.links.len() * LINK_BYTES));
            let message = WriterMessage::Links(batch);
            let _ = items.send(KeyedMessage { key, message });
        };
        let page = self.reader.read(page, &mut early);
        let page = page.map(|page| self.encoder.page(page));
        self.slot.end(&url);
        let mut page = page?;
        let entry = page.findings.entry.as_ref();
        page.held.entry = entry.map(|entry| self.entries.enter(entry.bytes()));
        let links = page.findings.links.len() * LINK_BYTES;
        let extracts: usize = page.findings.extract_rows.iter().map(extract_bytes).sum();
        page.held.links = Some(self.links.enter(links + extracts));
        let message = WriterMessage::Page(Box::new(page));
        Ok(KeyedMessage { key, message })
    }

    fn send_event(&self, event: Event) {
        // Once the run is over, the loop no longer exists and needs no report.
        if let Some(events) = self.events.upgrade() {
            let _ = events.send(event);
        }
    }
}

fn serve(
    work: &Receiver<ReaderTask>,
    items: &Sender<KeyedMessage>,
    abandon: &AtomicBool,
    mut tools: ReaderWorker,
) {
    loop {
        let next = work.try_recv().or_else(|_| {
            tools.slot.rest();
            work.recv()
        });
        let began = Instant::now();
        let work = match next {
            Ok(_) if abandon.load(Ordering::Relaxed) => continue,
            Ok(ReaderTask::Read(page, _)) if tools.reader.gives_back.load(Ordering::Relaxed) => {
                tools.send_event(Event::GivenBackUnread(page));
                continue;
            }
            Ok(work) => work,
            Err(channel::RecvError) => return,
        };
        // Page readers catch panics of parsers. Turn any other panic into a message that ends the
        // crawl with an error, since the coordinator would otherwise wait for a message forever.
        let item = catch_unwind(AssertUnwindSafe(|| match work {
            ReaderTask::Read(page, key) => {
                tools.report_begun(page.exchange.body.len() as u64);
                match tools.read(page, key, items) {
                    Ok(message) => Some(message),
                    Err(UnreadPage::Scripted(page, shell)) => {
                        tools.send_event(Event::Scripted { page, shell });
                        None
                    }
                    Err(UnreadPage::LeftOut(page))
                        if tools.reader.gives_back.load(Ordering::Relaxed) =>
                    {
                        tools.send_event(Event::ReadingStopped(page));
                        None
                    }
                    Err(UnreadPage::LeftOut(page)) => {
                        let host = page.lease.url.host_key();
                        let bytes = page.exchange.body.len() as u64;
                        tools.send_event(Event::DocumentWaits {
                            host: host.clone(),
                            bytes,
                        });
                        tools.documents.push(host, (page, key));
                        None
                    }
                }
            }
            ReaderTask::Pass(item) => Some(match *item {
                KeyedMessage {
                    key,
                    message: WriterMessage::Side(robots),
                } => {
                    let message = WriterMessage::Side(tools.encoder.robots(robots));
                    KeyedMessage { key, message }
                }
                other => other,
            }),
            ReaderTask::Drop(used) => {
                drop(used);
                None
            }
        }));
        let item = item.unwrap_or_else(|_| Some(reader_panicked()));
        tools.load.add(began.elapsed());
        if item.is_some_and(|item| items.send(item).is_err()) {
            // The page did not crash the process, so clear it from the reading journal's slot even
            // though it isn't settled. Otherwise it would become a crash suspect.
            tools.slot.rest();
            return;
        }
    }
}

/// Takes documents from the queue and has each read in another process, one at a time.
fn serve_documents(items: &Sender<KeyedMessage>, abandon: &AtomicBool, mut tools: ReaderWorker) {
    loop {
        tools.slot.rest();
        let Some((host, (page, key))) = tools.documents.pop() else {
            return;
        };
        let bytes = page.exchange.body.len() as u64;
        let read = match tools.reader.gives_back.load(Ordering::Relaxed) {
            true => Ok(Err(UnreadPage::LeftOut(page))),
            false => catch_unwind(AssertUnwindSafe(|| tools.read(page, key, items))),
        };
        tools.documents.end(&host);
        if abandon.load(Ordering::Relaxed) {
            continue;
        }
        tools.send_event(Event::DocumentEnded { host, bytes });
        let item = match read {
            Ok(Ok(item)) => item,
            Ok(Err(UnreadPage::LeftOut(page))) => {
                tools.send_event(Event::ReadingStopped(page));
                continue;
            }
            Ok(Err(UnreadPage::Scripted(page, shell))) => {
                tools.send_event(Event::Scripted { page, shell });
                continue;
            }
            Err(_) => reader_panicked(),
        };
        if items.send(item).is_err() {
            tools.slot.rest();
            return;
        }
    }
}

fn reader_panicked() -> KeyedMessage {
    KeyedMessage::unnamed(WriterMessage::Broken("a reader panicked".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_busy_if_pages_take_much_of_their_time() {
        let load = ReaderLoad::new();
        let measured = |spent: Duration| {
            load.add(spent);
            // Pretend that the last measurement was an hour ago.
            let hour = Duration::from_secs(3_600);
            load.window.lock().unwrap().ended = Instant::now().checked_sub(hour).unwrap();
            load.is_busy()
        };
        assert!(!load.is_busy());
        assert!(measured(Duration::from_secs(1_800) * load.readers));
        assert!(!measured(Duration::from_secs(720) * load.readers));
    }
}
