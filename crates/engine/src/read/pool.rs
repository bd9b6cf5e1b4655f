//! The threads that read pages and encode records, one per processor.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crawl_index_entry::ByteGate;
use crossbeam_channel::{self as channel, Receiver};
use tokio::sync::mpsc::WeakUnboundedSender;
use tracing::Span;

use super::PageReader;
use super::document_queue::DocumentQueue;
use super::page_encoder::PageEncoder;
use crate::config::Config;
use crate::messages::key::{Keyed, MessageKey};
use crate::messages::page::{FetchedPage, LinkBatch, UsedPage};
use crate::messages::{Event, WriterMessage};
use crate::state::crash_journal::{CrashJournal, JournalSlot};

/// A task for a reader thread. Most tasks end as a message to the writer.
#[derive(Debug)]
pub(crate) enum ReaderTask {
    /// Read an exchange. The key is that of the resulting message.
    Read(Box<FetchedPage>, Option<MessageKey>),
    /// Free the parts of committed pages.
    Drop(Vec<UsedPage>),
    /// Pass on a message, after encoding its exchange, if any, for the archive.
    Pass(Box<Keyed>),
}

/// A reader reports started pages once they have this many bytes. Less than the loop allows to be
/// unread, or the loop would wait for a report that never comes.
const MAX_UNREPORTED_BYTES: u64 = 1 << 20;

/// Bytes of index entries between readers and writer. A reader that exceeds it waits until the
/// writer has written others.
const MAX_ENTRY_BYTES: usize = 32 << 20;

/// Approximate memory of a link, with the URL of its page. Bytes.
const LINK_BYTES: usize = 500;
/// Memory for links of read but uncommitted documents. A single document may exceed it.
const MAX_LINK_BYTES: usize = 20_000 * LINK_BYTES;

/// The minimum interval between two measurements of the load, and the minimum load of busy readers.
const LOAD_INTERVAL: Duration = Duration::from_millis(200);
const BUSY_PERCENT: u64 = 40;

/// Returns the number of reader threads: one per processor.
pub(crate) fn count() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of threads that wait for reading processes. A host may occupy all but one.
fn document_count() -> usize {
    count() + 1
}

/// Returns the number of all threads that read.
pub(crate) fn all_threads() -> usize {
    count() + document_count()
}

/// The reader threads.
#[derive(Debug)]
pub(crate) struct ReaderPool {
    /// Unbounded, since the coordinator limits what it hands out.
    work: channel::Sender<ReaderTask>,
    /// Set to have waiting and current pages given back unread.
    gives_back: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    documents: DocumentQueue<WaitingDocument>,
    /// Set to have documents given back unread.
    gives_documents_back: Arc<AtomicBool>,
    document_threads: Vec<JoinHandle<()>>,
    abandon: Arc<AtomicBool>,
}

/// A document, and the key of the resulting message.
type WaitingDocument = (Box<FetchedPage>, Option<MessageKey>);

/// Measures how much of their time readers spend on pages. Clones share one measurement.
#[derive(Clone, Debug)]
pub(crate) struct ReaderLoad {
    /// Total time that all readers have spent on pages. Nanoseconds.
    spent: Arc<AtomicU64>,
    readers: u32,
    window: Arc<Mutex<LoadWindow>>,
}

/// The last measurement.
#[derive(Debug)]
struct LoadWindow {
    ended: Instant,
    /// The value of [`ReaderLoad::spent`] at that time.
    spent: u64,
    is_busy: bool,
}

impl ReaderLoad {
    pub(crate) fn new() -> ReaderLoad {
        ReaderLoad {
            spent: Arc::default(),
            readers: u32::try_from(count()).unwrap_or(u32::MAX),
            window: Arc::new(Mutex::new(LoadWindow {
                ended: Instant::now(),
                spent: 0,
                is_busy: false,
            })),
        }
    }

    /// Whether readers are busy much of the time. The processors then limit the speed of the crawl,
    /// since other threads need them too.
    pub(crate) fn is_busy(&self) -> bool {
        let window = self.window.lock();
        let mut window = window.unwrap_or_else(PoisonError::into_inner);
        let took = window.ended.elapsed();
        if took >= LOAD_INTERVAL {
            let spent = self.spent.load(Ordering::Relaxed);
            let all = nanos(took.saturating_mul(self.readers));
            let busy = spent.saturating_sub(window.spent);
            *window = LoadWindow {
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
        (items, events): (Sender<Keyed>, WeakUnboundedSender<Event>),
        abandon: &Arc<AtomicBool>,
        journal: &CrashJournal,
        load: &ReaderLoad,
    ) -> io::Result<ReaderPool> {
        // All readers share a queue, so that a slow page does not delay others.
        let (work, receiver) = channel::unbounded();
        let entries = ByteGate::new(MAX_ENTRY_BYTES);
        let slots = journal.slots()?.into_iter().enumerate();
        // Clones share one count.
        let links = ByteGate::new(MAX_LINK_BYTES);
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
        // Fails only if all readers are gone. The writer is gone too then, which the driver detects
        // separately.
        let _ = self.work.send(work);
    }

    /// Has unread pages given back from now on.
    pub(crate) fn give_up_unread(&self) {
        self.gives_back.store(true, Ordering::Relaxed);
        self.give_up_documents();
    }

    /// Has documents given back, both waiting ones and those being read.
    pub(crate) fn give_up_documents(&self) {
        self.gives_documents_back.store(true, Ordering::Relaxed);
    }

    /// Waits until the writer has everything.
    pub(crate) fn end(self) {
        if self.abandon.load(Ordering::Relaxed) {
            self.give_up_documents();
        }
        drop(self.work);
        for thread in self.threads {
            let _ = thread.join();
        }
        // Only the joined threads add to this queue.
        self.documents.close();
        for thread in self.document_threads {
            let _ = thread.join();
        }
    }
}

/// The state of one thread.
struct ReaderWorker {
    reader: PageReader,
    encoder: PageEncoder,
    slot: JournalSlot,
    /// Limits the index entries of all threads.
    entries: ByteGate,
    /// Limits the links of all threads until they are committed.
    links: ByteGate,
    /// Sends events to the crawl loop. Weak, because the loop learns that the writer's thread is
    /// gone when the last sender is dropped.
    events: WeakUnboundedSender<Event>,
    load: ReaderLoad,
    documents: DocumentQueue<WaitingDocument>,
    /// Bytes of started pages that are not reported yet.
    begun_bytes: u64,
}

impl ReaderWorker {
    /// Reports started pages, but not each one, which would wake the loop every time.
    fn report_begun(&mut self, bytes: u64) {
        self.begun_bytes += bytes;
        if self.begun_bytes >= MAX_UNREPORTED_BYTES {
            let bytes = std::mem::take(&mut self.begun_bytes);
            self.send_event(Event::ReadingBegan { bytes });
        }
    }

    /// Reads a page and encodes its records. The error is the unchanged page.
    fn read(
        &mut self,
        page: Box<FetchedPage>,
        key: Option<MessageKey>,
        items: &Sender<Keyed>,
    ) -> Result<Keyed, Box<FetchedPage>> {
        let url = page.lease.url.clone();
        self.slot.begin(&url);
        // Sending fails only if the writer is gone, and then sending the page ends this thread.
        let mut early = |mut batch: LinkBatch| {
            batch.held = Some(self.links.enter(batch.links.len() * LINK_BYTES));
            let message = WriterMessage::Links(batch);
            let _ = items.send(Keyed { key, message });
        };
        let page = self.reader.read(page, &mut early);
        let page = page.map(|page| self.encoder.page(page));
        self.slot.end(&url);
        let mut page = page?;
        let entry = page.findings.entry.as_ref();
        page.held.entry = entry.map(|entry| self.entries.enter(entry.bytes()));
        let links = page.findings.links.len();
        page.held.links = Some(self.links.enter(links * LINK_BYTES));
        let message = WriterMessage::Page(Box::new(page));
        Ok(Keyed { key, message })
    }

    fn send_event(&self, event: Event) {
        // Without a receiver the run is over.
        if let Some(events) = self.events.upgrade() {
            let _ = events.send(event);
        }
    }
}

fn serve(
    work: &Receiver<ReaderTask>,
    items: &Sender<Keyed>,
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
        // The reader catches panics of parsers. Any other panic would leave the coordinator waiting
        // for a message that never comes, so end the crawl with an error instead.
        let item = catch_unwind(AssertUnwindSafe(|| match work {
            ReaderTask::Read(page, key) => {
                tools.report_begun(page.exchange.body.len() as u64);
                match tools.read(page, key, items) {
                    Ok(message) => Some(message),
                    Err(page) if tools.reader.gives_back.load(Ordering::Relaxed) => {
                        tools.send_event(Event::ReadingStopped(page));
                        None
                    }
                    Err(page) => {
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
                Keyed {
                    key,
                    message: WriterMessage::Robots(robots),
                } => {
                    let message = WriterMessage::Robots(tools.encoder.robots(robots));
                    Keyed { key, message }
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
            // The page did not crash the process, so it is not a suspect although it is not
            // settled.
            tools.slot.rest();
            return;
        }
    }
}

/// Has documents read by reading processes, one at a time, and waits for each.
fn serve_documents(items: &Sender<Keyed>, abandon: &AtomicBool, mut tools: ReaderWorker) {
    loop {
        tools.slot.rest();
        let Some((host, (page, key))) = tools.documents.pop() else {
            return;
        };
        let bytes = page.exchange.body.len() as u64;
        let read = match tools.reader.gives_back.load(Ordering::Relaxed) {
            true => Ok(Err(page)),
            false => catch_unwind(AssertUnwindSafe(|| tools.read(page, key, items))),
        };
        tools.documents.end(&host);
        if abandon.load(Ordering::Relaxed) {
            continue;
        }
        tools.send_event(Event::DocumentEnded { host, bytes });
        let item = match read {
            Ok(Ok(item)) => item,
            Ok(Err(page)) => {
                tools.send_event(Event::ReadingStopped(page));
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

fn reader_panicked() -> Keyed {
    Keyed::unnamed(WriterMessage::Broken("a reader panicked".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_busy_if_pages_take_much_of_their_time() {
        let load = ReaderLoad::new();
        let measured = |spent: Duration| {
            load.add(spent);
            // As if the last measurement were an hour old.
            let hour = Duration::from_secs(3_600);
            load.window.lock().unwrap().ended = Instant::now().checked_sub(hour).unwrap();
            load.is_busy()
        };
        assert!(!load.is_busy());
        assert!(measured(Duration::from_secs(1_800) * load.readers));
        assert!(!measured(Duration::from_secs(720) * load.readers));
    }
}
