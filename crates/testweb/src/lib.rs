//! A seeded, misbehaving web on loopback with a request log: what crawls are tested against.
//!
//! A [`TestWeb`] is many hosts, each on an address of its own in 127.0.0.0/8. Its pages are
//! computed from a seed when they are asked for, so a web of a million pages costs nothing to
//! keep, and [`TestWeb::truth`] says what a crawl of it must find: which URLs are to be fetched,
//! which are excluded and by what. Any path can be given a [`Script`] instead: other answers, late
//! answers, a sequence of answers, or bytes that are no HTTP at all. Every request stands in
//! [`TestWeb::log`] with its times, on a scale that no later step of the clock bends.
//!
//! It never opens a connection, never listens outside of loopback, depends on no other room of the
//! crawler, and so knows nothing of how one should behave beyond the standards.
//!
//! ```
//! use std::io::{Read, Write};
//! use crawl_testweb::{Answer, CrawlReach, TestWeb};
//!
//! let web = TestWeb::builder().seed(7).hosts(2).pages(30)
//!     .script(0, "/busy", Answer::of(503).header("retry-after", "1"))
//!     .start();
//!
//! let mut stream = std::net::TcpStream::connect(web.address(0))?;
//! stream.write_all(b"GET /busy HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 503 "));
//!
//! assert_eq!(web.log()[0].path, "/busy");
//! assert!(web.truth(CrawlReach::Host).fetched.len() >= 30);
//! # Ok::<(), std::io::Error>(())
//! ```

mod link_spellings;
mod log;
mod misbehaviour;
mod nginx;
mod random;
mod reply;
mod reply_queue;
mod request;
mod server;
mod site;
mod sockets;
mod spec;
mod traps;
mod truth;
mod web;
mod web_plan;

pub use log::{LogEntry, gaps};
pub use misbehaviour::{Misbehaviour, misbehaviours};
pub use nginx::{Nginx, NginxEndpoint, NginxLog, NginxSpec};
pub use reply::{Answer, Reply, ReplyStep, Script};
pub use request::ReceivedRequest;
pub use spec::{ConnectionMode, Spec};
pub use traps::{TRAPS, TrapWeb};
pub use truth::{CrawlReach, ExclusionReason, Expected, Truth};
pub use web::TestWeb;
pub use web_plan::LinkMix;
