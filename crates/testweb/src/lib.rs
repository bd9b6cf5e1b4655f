//! A seeded, misbehaving web on loopback with a request log, for testing crawlers.
//!
//! A [`TestWeb`] has any number of hosts, each on its own address in 127.0.0.0/8. Its pages are
//! computed from a seed on request, so a web of a million pages takes no memory. [`TestWeb::truth`]
//! returns what a crawl must find: the URLs to fetch, and the URLs that are excluded, with the
//! reasons. A [`Script`] replaces the replies for a path: with other answers, late answers, a
//! sequence of answers, or bytes that are not HTTP at all. [`TestWeb::log`] contains every request
//! with its times, on a scale that is unaffected by clock changes.
//!
//! The web never opens a connection, never listens outside of loopback, and depends on no other
//! crate of the crawler, so its behaviour follows from the standards alone.
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
