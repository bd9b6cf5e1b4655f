//! The threads that read pages and encode records, one per processor.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crawl_index::ByteGate;

use crate::config::Config;
use crate::item::{Item, Reading};
use crate::journal::{Journal, Pen};
use crate::keep::Keeper;
use crate::read::Reader;
use crate::visits::Visits;

/// Something on its way to the writer.
#[expect(
    clippy::large_enum_variant,
    reason = "moved a few times per request, and a box would be an allocation more"
)]
#[derive(Debug)]
pub(crate) enum Work {
    /// An exchange that is to be read.
    Read(Box<Reading>),
    /// An item as it is; its exchange, if any, is encoded for the archive.
    Pass(Item),
}

/// Bytes of pages for the search index between readers and writer. A reader whose page is beyond
/// it waits until the writer has written others.
const MAX_ENTRY_BYTES: usize = 32 << 20;

/// What a link takes in memory, about, with the URL that it was found on.
const LINK_BYTES: usize = 500;
/// Links of documents that were read and are not committed. A sitemap has 150,000 at most; a few
/// hundred of those would fill a machine.
const MAX_LINK_BYTES: usize = 150_000 * LINK_BYTES;

/// How many reader threads there are: one per processor.
pub(crate) fn count() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The reader threads.
#[derive(Debug)]
pub(crate) struct Readers {
    /// Unbounded, as the ring bounds what it hands out.
    work: Sender<Work>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(crate) fn start(
        config: &Config,
        visits: &Visits,
        items: Sender<Item>,
        abandon: &Arc<AtomicBool>,
        journal: &Journal,
    ) -> io::Result<Readers> {
        let (work, receiver) = mpsc::channel();
        // One queue for all, so that one slow page holds up no other.
        let receiver = Arc::new(Mutex::new(receiver));
        let entries = ByteGate::new(MAX_ENTRY_BYTES);
        let pens = journal.pens()?.into_iter().enumerate();
        // What they count together is shared by clones.
        let (reader, links) = (Reader::new(config, visits), ByteGate::new(MAX_LINK_BYTES));
        let threads = pens.map(|(n, pen)| {
            let tools = ReaderTools {
                reader: reader.clone(),
                keeper: Keeper::new(config),
                pen,
                entries: entries.clone(),
                links: links.clone(),
            };
            let (receiver, items, abandon) =
                (Arc::clone(&receiver), items.clone(), Arc::clone(abandon));
            thread::Builder::new()
                .name(format!("crawl-reader-{n}"))
                .spawn(move || serve(&receiver, &items, &abandon, tools))
        });
        Ok(Readers {
            threads: threads.collect::<io::Result<_>>()?,
            work,
        })
    }

    pub(crate) fn take(&self, work: Work) {
        // Fails only when every reader is gone, and then so is the writer, whose end
        // the driver learns by itself.
        let _ = self.work.send(work);
    }

    /// Waits until all work is with the writer.
    pub(crate) fn end(self) {
        drop(self.work);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// What one thread works with.
struct ReaderTools {
    reader: Reader,
    keeper: Keeper,
    pen: Pen,
    /// Bounds what the index is told, over all threads.
    entries: ByteGate,
    /// Bounds the links on their way to the disk, over all threads.
    links: ByteGate,
}

fn serve(
    work: &Mutex<Receiver<Work>>,
    items: &Sender<Item>,
    abandon: &AtomicBool,
    mut tools: ReaderTools,
) {
    loop {
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let work = match next {
            Ok(_) if abandon.load(Ordering::Relaxed) => continue,
            Ok(work) => work,
            Err(mpsc::RecvError) => return,
        };
        // Parsers are caught in the reader. What panics here would leave the ring waiting
        // for an item that never comes, so it ends the crawl by name.
        let item = catch_unwind(AssertUnwindSafe(|| match work {
            Work::Read(reading) => {
                let url = reading.lease.url.clone();
                tools.pen.begin(&url);
                let mut page = tools.keeper.page(tools.reader.read(*reading));
                tools.pen.end(&url);
                let entry = page.entry.as_ref();
                page.entry_pass = entry.map(|entry| tools.entries.enter(entry.bytes()));
                page.links_pass = Some(tools.links.enter(page.links.len() * LINK_BYTES));
                Item::Page(Box::new(page))
            }
            Work::Pass(Item::Robots(robots)) => Item::Robots(tools.keeper.robots(robots)),
            Work::Pass(item) => item,
        }));
        let item = item.unwrap_or_else(|_| Item::Broken("a reader panicked".to_owned()));
        if items.send(item).is_err() {
            return;
        }
    }
}
