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
        let threads = pens.map(|(n, mut pen)| {
            let (reader, mut keeper) = (Reader::new(config, visits), Keeper::new(config));
            let (receiver, items, abandon) =
                (Arc::clone(&receiver), items.clone(), Arc::clone(abandon));
            let entries = entries.clone();
            thread::Builder::new()
                .name(format!("crawl-reader-{n}"))
                .spawn(move || {
                    let pen = &mut pen;
                    serve(
                        &receiver,
                        &items,
                        &abandon,
                        &entries,
                        &reader,
                        &mut keeper,
                        pen,
                    );
                })
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

fn serve(
    work: &Mutex<Receiver<Work>>,
    items: &Sender<Item>,
    abandon: &AtomicBool,
    entries: &ByteGate,
    reader: &Reader,
    keeper: &mut Keeper,
    pen: &mut Pen,
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
                pen.begin(&url);
                let mut page = keeper.page(reader.read(*reading));
                pen.end(&url);
                let entry = page.entry.as_ref();
                page.entry_pass = entry.map(|entry| entries.enter(entry.bytes()));
                Item::Page(Box::new(page))
            }
            Work::Pass(Item::Robots(robots)) => Item::Robots(keeper.robots(robots)),
            Work::Pass(item) => item,
        }));
        let item = item.unwrap_or_else(|_| Item::Broken("a reader panicked".to_owned()));
        if items.send(item).is_err() {
            return;
        }
    }
}
