//! The sharing thread of a worker in a trial, in virtual time: heartbeats, checks of the other
//! workers, and the messages between the thread and the crawl loop.

use std::collections::BTreeSet;
use std::mem::take;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crawl_frontier::MemoryWorker;
use crawl_frontier::worker_frontier::{SendDeadline, WorkerFrontier as _};
use crawl_scheduler::Tick;
use crawl_weburl::HostKey;

use super::super::super::START;
use super::{PersistentTrialState, ProgramLife, TimedEvent};
use crate::config::Config;
use crate::messages::Event;
use crate::messages::shared_frontier_messages::{SharedFrontierNews, SharedFrontierRequest};
use crate::worker_coordination_thread::SharingThreadState;

/// How often a worker that is cut off tries to reach the database.
pub(in super::super) const RECONNECTS: Duration = Duration::from_millis(100);

/// The virtual time of a trial, for parts of the program that otherwise use the system's clock.
#[derive(Clone)]
pub(in super::super) struct VirtualClock {
    start: Instant,
    /// Microseconds since [`START`].
    passed: Arc<AtomicU64>,
}

impl VirtualClock {
    pub(in super::super) fn new() -> VirtualClock {
        VirtualClock {
            start: Instant::now(),
            passed: Arc::default(),
        }
    }

    pub(in super::super) fn set(&self, now: Tick) {
        let passed = now.since(START).as_micros() as u64;
        self.passed.store(passed, Ordering::Relaxed);
    }

    pub(in super::super) fn now(&self) -> Instant {
        self.start + Duration::from_micros(self.passed.load(Ordering::Relaxed))
    }

    fn tick(&self, at: Instant) -> Tick {
        START + at.saturating_duration_since(self.start)
    }
}

/// A fault or command that can only happen to a worker of a shared crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum WorkerDisruption {
    /// The worker can't reach the database for this time.
    CutOff(Duration),
    /// The process is frozen for this time.
    Frozen(Duration),
    /// The operator drains the worker.
    Drained,
}

type SendEvent = Box<dyn Fn(Event) -> bool + Send>;

/// The sharing thread of a worker, and its connection to the database.
pub(in super::super) struct SimulatedSharing {
    frontier: Arc<MemoryWorker>,
    guard: Arc<dyn SendDeadline>,
    links: SharingThreadState<SendEvent>,
    /// Events that the thread has sent and that are not passed on yet.
    sent: Arc<Mutex<Vec<Event>>>,
    clock: VirtualClock,
    /// Makes the database drain this worker.
    drain: Box<dyn Fn()>,
    heartbeat: Duration,
    /// The buckets (sets of hosts) that the worker owned when this was last checked.
    owned: Vec<i32>,
    is_over: bool,
    /// Whether the thread noticed that the crawl is over, and `takes_note_of_end` has not reported
    /// this yet.
    noticed_end: bool,
    is_cut_off: bool,
    frozen_until: Tick,
    /// The latest arrival time of a message in each direction. Later messages arrive no earlier, so
    /// messages don't overtake each other.
    last_event: Tick,
    last_request: Tick,
}

impl SimulatedSharing {
    pub(in super::super) fn new(
        frontier: Arc<MemoryWorker>,
        config: &Config,
        clock: VirtualClock,
        drain: Box<dyn Fn()>,
    ) -> SimulatedSharing {
        let sent: Arc<Mutex<Vec<Event>>> = Arc::default();
        let sender = Arc::clone(&sent);
        let send: SendEvent = Box::new(move |event| {
            sender.lock().unwrap().push(event);
            true
        });
        let lease = config.shared.as_ref().unwrap().lease;
        SimulatedSharing {
            guard: frontier.send_deadline(),
            links: SharingThreadState::new(Arc::clone(&frontier) as _, config, send),
            frontier,
            sent,
            clock,
            drain,
            heartbeat: lease / 3,
            owned: Vec::new(),
            is_over: false,
            noticed_end: false,
            is_cut_off: false,
            frozen_until: Tick::ZERO,
            last_event: Tick::ZERO,
            last_request: Tick::ZERO,
        }
    }

    /// Gives up all buckets (sets of hosts) at the end of a run. Adds them to `released`.
    pub(super) fn give_up(self, released: &mut BTreeSet<i32>) {
        let owned = self.frontier.owned_buckets();
        if self.frontier.give_up().is_ok() {
            released.extend(owned);
        }
    }
}

impl ProgramLife {
    pub(super) fn begin_sharing(&mut self, world: &mut PersistentTrialState<'_>) {
        let Some(sharing) = &self.sharing else { return };
        let heartbeat = sharing.heartbeat;
        self.after(heartbeat, TimedEvent::Beats);
        self.soon(world, TimedEvent::Looks);
        self.note_taken(world);
    }

    /// Returns whether this worker owns hosts with pending URLs and does not rest.
    pub(in super::super) fn has_work(&self) -> bool {
        let sharing = self.sharing.as_ref();
        sharing.is_some_and(|sharing| sharing.frontier.check().is_ok())
            && !self.coordinator.rests()
            && !self.frontier.origins().is_empty()
    }

    /// Returns whether the sharing thread has noticed since the last call that the crawl is over.
    pub(in super::super) fn takes_note_of_end(&mut self) -> bool {
        let sharing = self.sharing.as_mut();
        sharing.is_some_and(|sharing| take(&mut sharing.noticed_end))
    }

    /// Returns whether a request may be sent now.
    pub(super) fn may_send(&self) -> bool {
        !self
            .sharing
            .as_ref()
            .is_some_and(|sharing| sharing.guard.is_over())
    }

    /// Returns whether a commit has to wait until the database can be reached again. If the leases
    /// are no longer valid, a commit doesn't wait.
    pub(super) fn waits_for_database(&self) -> bool {
        let sharing = self.sharing.as_ref();
        sharing.is_some_and(|sharing| sharing.is_cut_off && sharing.frontier.check().is_ok())
    }

    /// Returns when requests in flight will be aborted unless a heartbeat succeeds first.
    pub(super) fn flights_end(&self) -> Option<Tick> {
        let sharing = self.sharing.as_ref()?;
        let at = sharing.clock.tick(sharing.guard.ends_at());
        (self.has_flights() && at > self.now).then_some(at)
    }

    /// Aborts the requests in flight if the leases of their hosts are about to end.
    pub(super) fn abort_late_flights(&mut self) {
        let Some(sharing) = &self.sharing else { return };
        let at = sharing.clock.tick(sharing.guard.ends_at());
        if at <= self.now && self.has_flights() {
            self.abort_flights(at);
        }
    }

    /// Returns when an event is handled: at its time, or when the process is no longer frozen.
    pub(super) fn thawed(&self, at: Tick) -> Tick {
        let sharing = self.sharing.as_ref();
        sharing.map_or(at, |sharing| at.max(sharing.frozen_until))
    }

    pub(super) fn suffer(
        &mut self,
        world: &mut PersistentTrialState<'_>,
        trouble: WorkerDisruption,
    ) {
        let Some(sharing) = &mut self.sharing else {
            return;
        };
        let worker = world.worker;
        world
            .trace
            .note(self.now, || format!("w{worker} {trouble:?}"));
        match trouble {
            WorkerDisruption::CutOff(time) => {
                sharing.is_cut_off = true;
                sharing.frontier.cut_off(true);
                self.after(time, TimedEvent::Reconnects);
            }
            WorkerDisruption::Frozen(time) => {
                sharing.frozen_until = self.now + time;
                world.checker.froze(worker);
            }
            WorkerDisruption::Drained => (sharing.drain)(),
        }
    }

    /// Sends a request of the crawl loop to the sharing thread.
    pub(super) fn share(
        &mut self,
        world: &mut PersistentTrialState<'_>,
        request: SharedFrontierRequest,
    ) {
        let at = self.now + self.delay(world);
        let sharing = self.sharing.as_mut().unwrap();
        sharing.last_request = sharing.last_request.max(at);
        let at = sharing.last_request;
        self.at(at, TimedEvent::Shares(request));
    }

    /// Handles an event in the sharing thread or in its connection.
    pub(super) fn shares(&mut self, world: &mut PersistentTrialState<'_>, happening: TimedEvent) {
        let now = self.now;
        let Some(sharing) = &mut self.sharing else {
            return;
        };
        let done = match happening {
            TimedEvent::Beats => {
                let heartbeat = sharing.heartbeat;
                // Ignore a failed heartbeat: heartbeats are repeated until the leases end.
                let _ = sharing.frontier.renew();
                return self.after(heartbeat, TimedEvent::Beats);
            }
            TimedEvent::Reconnects => {
                sharing.is_cut_off = false;
                return sharing.frontier.cut_off(false);
            }
            _ if sharing.is_over => return,
            TimedEvent::Looks => {
                let wait = sharing.links.interval * (1 + world.dice.below(20) as u32);
                let done = sharing.links.look();
                self.after(wait, TimedEvent::Looks);
                done
            }
            TimedEvent::Shares(request) => {
                let worker = world.worker;
                world.trace.note(now, || format!("w{worker} {request:?}"));
                let mut leaving = Vec::new();
                if let SharedFrontierRequest::HandOver(buckets) = &request {
                    let is_left =
                        |host: &HostKey| buckets.contains(&sharing.frontier.bucket_of(host));
                    world.checker.handed_over(worker, is_left);
                    // A worker whose leases have ended can't hand hosts over.
                    if sharing.frontier.check().is_ok() {
                        leaving.clone_from(buckets);
                    }
                }
                let done = sharing.links.perform(request);
                if done.is_ok() {
                    world.released.extend(leaving);
                }
                done
            }
            _ => unreachable!("not an event of the sharing thread"),
        };
        let sharing = self.sharing.as_mut().unwrap();
        sharing.is_over = !sharing.links.continues_after(done);
        self.note_taken(world);
        self.pass_on(world);
    }

    /// Reports to the checker which buckets (sets of hosts) this worker took.
    fn note_taken(&mut self, world: &mut PersistentTrialState<'_>) {
        let Some(sharing) = &mut self.sharing else {
            return;
        };
        let owned = sharing.frontier.owned_buckets();
        let new = owned.iter().filter(|b| !sharing.owned.contains(b));
        for b in new {
            let is_released = world.released.remove(b);
            let (worker, frontier) = (world.worker, &sharing.frontier);
            let is_start = self.events == 0;
            world.trace.note(self.now, || {
                format!("w{worker} takes {b}, released: {is_released}")
            });
            let is_taken = |host: &HostKey| frontier.bucket_of(host) == *b;
            world.checker.taken_over(
                worker,
                self.now,
                (is_start, is_released),
                is_taken,
                &**frontier,
            );
        }
        sharing.owned = owned;
    }

    /// Schedules the arrival of the thread's events in the crawl loop, in order.
    fn pass_on(&mut self, world: &mut PersistentTrialState<'_>) {
        let sent = self
            .sharing
            .as_ref()
            .map(|sharing| take(&mut *sharing.sent.lock().unwrap()));
        for event in sent.into_iter().flatten() {
            let at = self.now + self.delay(world);
            let sharing = self.sharing.as_mut().unwrap();
            sharing.noticed_end |= matches!(event, Event::Shared(SharedFrontierNews::Over { .. }));
            sharing.last_event = sharing.last_event.max(at);
            let at = sharing.last_event;
            self.at(at, TimedEvent::Heard(event));
        }
    }
}
